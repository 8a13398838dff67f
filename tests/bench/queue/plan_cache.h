// Searches of a queue study: the planner's own, by model and by the number of nodes of each kind, each run
// once. Numbers of nodes are rounded down to 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ..., which saves most
// searches. Not thread-safe.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/inputs/load_inputs.h"
#include "planner/search/search.h"
#include "tests/bench/queue/workload.h"

namespace sailor::bench {

struct StudyModel {
  std::string name;
  std::unique_ptr<PlanningInputs> inputs;  // with the whole cluster as snapshot
};
// From a file like models.csv. Throws InputError.
std::vector<StudyModel> load_models(const std::string& path, const Snapshot& cluster);

class PlanCache {
 public:
  // `file` keeps the plans for other studies of the same cluster by the same program; empty = none. Throws
  // InputError if it is not such a file.
  PlanCache(const std::vector<StudyModel>& models, std::vector<NodeKind> kinds, const std::string& file = "");

  // The best plan on these nodes, with their names.
  SearchResult search(size_t model, const Snapshot& nodes);
  size_t searches() const { return searches_; }

 private:
  using Counts = std::vector<int>;  // of nodes, by kind

  void read(const std::string& file);
  SearchResult run(size_t model, const Snapshot& nodes);

  const std::vector<StudyModel>& models_;
  const std::vector<NodeKind> kinds_;
  std::map<std::string, size_t> kind_of_;  // by node
  std::map<std::pair<size_t, Counts>, SearchResult> results_;
  size_t searches_ = 0;
  std::ofstream file_;
};

// What people write by hand: all GPUs of the nodes, which are alike; tensor parallelism within the node,
// pipelines over few nodes and data parallelism for the rest, equal stages; the smallest tensor and pipeline
// parallelism that fits, recomputation if nothing else does, the largest microbatch that fits up to 8.
// Nothing if none fits.
std::optional<Candidate> hand_written(const PlanningContext& context);

}  // namespace sailor::bench
