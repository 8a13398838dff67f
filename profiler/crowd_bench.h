// Measures the layers of a model with as many concurrent ranks as a job has on this machine: they share its
// caches and memory, so each is slower than alone. Every rank is a thread and measures its own stack
// (stack_bench.h); TP groups are real while they fit. Not thread-safe.
#pragma once

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "planner/spec/job_spec.h"
#include "profiler/samples.h"
#include "profiler/stack_bench.h"

namespace sailor {

class CrowdBench {
 public:
  // `ranks` > 0 run concurrently, with `gpus` each on its own GPU. `collectives` sets the precision of the
  // cost of a collective for TP degrees above `ranks`, which have no real group, so that it has to be added.
  CrowdBench(JobSpec job, int ranks, const MeasuringOptions& collectives, bool gpus = false);

  struct Series {
    std::vector<StackBench::ByKind> cells;  // in the order of the microbatches; the last ones may be missing
    bool out_of_memory = false;             // the first missing one does not fit
  };

  // The times of one rank, in the order of `microbatches`: of the slowest member of a TP group, averaged over
  // groups. Ends before the first microbatch that does not fit into memory, and begins none but the first
  // after `most_s` seconds. Throws InputError when the model cannot be split over `tp` GPUs, CommError.
  Series measure(int tp, const std::vector<int>& microbatches, const MeasuringOptions& options,
                 double most_s = std::numeric_limits<double>::infinity());

 private:
  double collectives_s(int tp, const std::vector<int64_t>& sizes_bytes);

  JobSpec job_;
  int ranks_;
  bool gpus_;
  MeasuringOptions collective_options_;
  std::map<std::pair<int, int64_t>, double> collective_s_;  // by TP degree and size
};

// The means (Samples::usual_mean) of several measurements at different times. The error is that of the mean
// of independent measurements, or their spread if that is larger. Requires at least one.
StackBench::ByKind typical(const std::vector<StackBench::ByKind>& measurements);

}  // namespace sailor
