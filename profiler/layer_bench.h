// Measures one kind of layer of a model on this machine, as one GPU of a TP group sees it.
//
// For TP degrees above one the layer is rank 0's shard, and its collectives are copies within memory
// (copying_communicator.h): what the real ones cost is measured apart and has to be added. One thread per
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/spec/job_spec.h"
#include "profiler/samples.h"

namespace sailor {

struct LayerMeasurement {
  LayerTimes times;
  int samples = 0;
  double relative_error = 0;           // of forward + backward, as Samples::relative_error
  std::vector<int64_t> forward_bytes;  // of each TP collective of one microbatch, in order
  std::vector<int64_t> backward_bytes;
};

class LayerBench {
 public:
  // Throws InputError when the model cannot be split over `tp` GPUs.
  LayerBench(const JobSpec& job, LayerKind kind, int tp);
  ~LayerBench();

  LayerMeasurement measure(int microbatch, const MeasuringOptions& options);
  // Of one sequence, from a microbatch of `microbatch`.
  LayerSizes sizes(int microbatch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
