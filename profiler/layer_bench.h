// Measures the sizes of one kind of layer of a model on one GPU of a TP group (rank 0's shard; its
// collectives are copies in memory, copying_communicator.h). Times: stack_bench.h. One thread per object.
#pragma once

#include <cstdint>
#include <memory>

#include "planner/profile/layer_profile.h"
#include "planner/spec/job_spec.h"
#include "trainer/comm/device.h"

namespace sailor {

class LayerBench {
 public:
  // Throws InputError when the model cannot be split over `tp` GPUs.
  // `device` outlives the object.
  LayerBench(const JobSpec& job, LayerKind kind, int tp, Device& device = host_device());
  ~LayerBench();

  // Sizes for one sequence, from a microbatch of `microbatch`.
  LayerSizes sizes(int microbatch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sailor
