// Measures the layers of a model with as many ranks at work on this machine as a job has there: they share
// its caches and its memory, so that each is slower than it would be alone. Every rank is a thread here, and
// measures a stack of its own (stack_bench.h); TP groups are real ones while they fit. Not thread-safe.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "planner/spec/job_spec.h"
#include "profiler/samples.h"
#include "profiler/stack_bench.h"

namespace sailor {

class CrowdBench {
 public:
  // `ranks` > 0 work at the same time, with `gpus` each on a GPU of its own. `collectives` says how well the
  // cost of a collective is measured for TP degrees above `ranks`, where no group is real and that cost has
  // to be added.
  CrowdBench(JobSpec job, int ranks, const MeasuringOptions& collectives, bool gpus = false);

  // The times of one rank, in the order of `microbatches`: of a TP group its slowest member's, of several
  // groups their mean. Throws InputError when the model cannot be split over `tp` GPUs, CommError.
  std::vector<StackBench::ByKind> measure(int tp, const std::vector<int>& microbatches,
                                          const MeasuringOptions& options);

 private:
  double collectives_s(int tp, const std::vector<int64_t>& sizes_bytes);

  JobSpec job_;
  int ranks_;
  bool gpus_;
  MeasuringOptions collective_options_;
  std::map<std::pair<int, int64_t>, double> collective_s_;  // by TP degree and size
};

// Several measurements of the same thing, made at different times: the means (Samples::usual_mean). The error
// is that of the mean of independent measurements, or what their spread says, if that is more. Requires at
// least one.
StackBench::ByKind typical(const std::vector<StackBench::ByKind>& measurements);

}  // namespace sailor
