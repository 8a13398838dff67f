// Measures the layers of a model on this machine, as one GPU of a TP group sees them, in the company that
// they have in a job: a stack of embedding, several blocks and head runs forward and backward, and every
// layer is timed by itself. A layer that is measured alone finds its weights in the cache, and is up to a
// tenth faster than it ever is in a job.
//
// For TP degrees above one there are two ways. With a real group every member owns an object and measures at
// the same time as the others, collectives and waiting included; that needs a core per member. Without one
// the layers are rank 0's shards, and their collectives are copies within memory (copying_communicator.h):
// what the real ones cost is measured apart and has to be added. One thread per object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/spec/job_spec.h"
#include "profiler/samples.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct LayerMeasurement {
  LayerTimes times;  // update: all that a rank does per parameter and iteration, the gradient's norm included
  int samples = 0;
  double relative_error = 0;           // of forward + backward, as Samples::relative_error
  std::vector<int64_t> forward_bytes;  // of each TP collective of one microbatch, in order; with copies only
  std::vector<int64_t> backward_bytes;
};

class StackBench {
 public:
  using ByKind = std::array<LayerMeasurement, 3>;  // by LayerKind

  // Throws InputError when the model cannot be split over `tp` GPUs.
  StackBench(const JobSpec& job, int tp);
  // A member of a real TP group, which outlives the object. All members call the same functions.
  StackBench(const JobSpec& job, Communicator& group);
  ~StackBench();

  ByKind measure(int microbatch, const MeasuringOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
