// The reference data pack as inputs of the planner: prices, memory, egress, global batch, profiles. Nodes of
// the synthetic clusters have four GPUs, as the reference assumes.
#pragma once

#include <map>
#include <string>

#include "planner/profile/profile_set.h"
#include "planner/simulator/simulate.h"
#include "planner/spec/catalog.h"
#include "planner/spec/snapshot.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

// All inputs for planning one scenario.
struct Inputs {
  JobSpec job;
  Snapshot snapshot;
  Catalog catalog;
  ProfileSet profiles;
  FrameworkStyle framework = own_framework();

  PlanningContext context() const { return {job, snapshot, catalog, profiles, framework}; }
};

class ReferenceData {
 public:
  explicit ReferenceData(std::string directory);

  Inputs inputs(const Scenario& scenario) const;
  Catalog catalog() const { return catalog_; }
  int64_t global_batch(const std::string& model) const;

 private:
  std::string directory_;
  Catalog catalog_;
  std::map<std::string, std::map<std::string, double>> egress_;
};

// The cluster of a scenario: nodes of `gpus_per_node` free GPUs; the names of zones of one region are equal
// up to the last dash.
Snapshot make_snapshot(const std::vector<PoolSize>& pools, int gpus_per_node);

// A random cluster and model: `types` GPU types of different speed and memory in `zones` zones of two or
// three regions.
Inputs generate_inputs(uint64_t seed, int types, int zones, int gpus);

}  // namespace sailor::bench
