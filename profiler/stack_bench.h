// Measures the layers of a model on this machine, on one GPU of a TP group, in the same context as in a job:
// a stack of embedding, several blocks and head runs forward and backward, and every layer is timed
// separately. A layer that is measured alone finds its weights in the cache, and is up to a tenth faster than
// it ever is in a job.
//
// Several objects can measure concurrently, each in its own thread, because the ranks of a job share the
// memory of the machine (crowd_bench.h). TP degrees above one are measured in two ways. With a real group the
// members measure together, collectives and waiting included; that needs a core per member. Without one, the
// layers are rank 0's shards, and their collectives are copies in memory (copying_communicator.h): the cost
// of real ones is measured separately and has to be added. One thread per object.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/spec/job_spec.h"
#include "profiler/samples.h"
#include "trainer/comm/device.h"

namespace sailor {

struct LayerMeasurement {
  LayerTimes times;  // update: all work per parameter and iteration, including the gradient norm
  int samples = 0;
  int outliers = 0;
  double relative_error = 0;  // of forward + backward, half of the 95 % confidence interval; at most 10
  std::vector<int64_t> forward_bytes;  // of each TP collective of one microbatch, in order; only with copies
  std::vector<int64_t> backward_bytes;
};

class StackBench {
 public:
  using ByKind = std::vector<LayerMeasurement>;  // in the order of layer_kinds()

  // The concurrently measuring ranks: all members of `all` call the same functions and take every sample
  // together. `group` is the real TP group of this one, part of `all`. All outlive the object.
  struct Company {
    Communicator* all = nullptr;
    Communicator* group = nullptr;
    // The device of this member; the calling thread computes on it (ComputeOn). `group` is over its memory.
    Device* device = &host_device();
  };

  // Throws InputError when the model cannot be split over `tp` GPUs.
  StackBench(const JobSpec& job, int tp, const Company& company);
  StackBench(const JobSpec& job, int tp) : StackBench(job, tp, Company()) {}
  ~StackBench();

  ByKind measure(int microbatch, const MeasuringOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
