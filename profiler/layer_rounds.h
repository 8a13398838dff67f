// The rounds in which all cells (microbatch, TP degree) of a layer profile are measured, kept in a journal
// and in the profile's file as they are done. The first round measures the microbatches of a TP degree in
// ascending order until one does not fit into memory; later rounds measure what the first one did. One thread
// per object.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/spec/job_spec.h"
#include "profiler/crowd_bench.h"
#include "profiler/profile_journal.h"

namespace sailor {

struct LayerRoundsRequest {
  JobSpec job;
  std::vector<int> microbatches;  // ascending
  std::vector<int> tps;
  int ranks = 1;
  bool gpus = false;
  // Nobody has asked for all of these microbatches: `seconds` ends the first round too. Of every TP degree
  // the first one is measured.
  bool open_ended = false;
  double seconds = 0;  // after which nothing is measured again
};

class LayerRounds {
 public:
  static constexpr int kRounds = 3;  // of all cells, one after the other

  // Takes up what the journal of an interrupted run has. Keeps a reference to `profile`, stored in `file`.
  LayerRounds(LayerRoundsRequest request, const MeasuringOptions& options, std::string file,
              ProfileFile& profile);

  // Until all cells have kRounds rounds and are precise, or the time is over. `advance` gets the number of
  // measured cells and of all cells. Throws as CrowdBench.
  void measure(const std::function<void(double done, double total)>& advance);
  // Which cells were not measured, and why.
  std::vector<std::string> notes() const;
  // A line for every cell; their number. The journal has done its work.
  int tell_all(const std::function<void(const std::string&)>& tell);

 private:
  struct End {
    int microbatch = 0;  // the first that was not measured
    bool out_of_memory = false;
  };

  std::vector<int> due_in(int round, int tp) const;
  void measure_round(int round, int tp, const std::vector<int>& microbatches);
  void put_cell(int tp, int microbatch);

  const LayerRoundsRequest request_;
  const MeasuringOptions options_;
  const std::string file_;
  const std::vector<LayerKind> kinds_;
  ProfileFile& profile_;
  CrowdBench crowd_;
  ProfileJournal journal_;
  std::map<int, End> ends_;  // by TP degree
};

}  // namespace sailor
