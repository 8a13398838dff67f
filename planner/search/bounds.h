// Lower bounds that hold for every plan with one microbatch size and one D, mixed stages included. Pure.
#pragma once

#include "planner/search/stage_costs.h"

namespace sailor {

class WorkBound {
 public:
  WorkBound(const StageCosts& costs, const Resources& resources);

  // No pipeline of D can have a bottleneck stage faster than this, in any plan on these resources.
  double bottleneck_s(int replicas) const;
  // The same for what is left: layers [0, end) on the counters' `left` GPUs.
  double bottleneck_s(int replicas, int end, const std::vector<int>& left) const;
  // Could D copies of layers [0, end) be held by the counters' `left` GPUs, `in_flight` microbatches each?
  bool memory_suffices(int replicas, int end, int in_flight, const std::vector<int>& left) const;
  // Gradient sync that no plan avoids (published model; 0 under the native one).
  double sync_s(int replicas) const;
  // An iteration of `total` microbatches on D pipelines. published: the busiest pipeline runs ceil(total / D)
  // rounds at the bottleneck. native: shares may differ between pipelines, so only the work of all GPUs
  // together counts, and the busiest pipeline's longest layer.
  double iteration_s(int replicas, int64_t total) const;
  // GPUs are paid for as long as they compute, at least.
  double usd(int replicas, int64_t total) const;

 private:
  const StageCosts& costs_;
  const Resources& resources_;
  std::vector<double> work_;        // value of layers [0, end) in blocks
  std::vector<double> rate_;        // by pool: blocks per second and GPU, at best
  std::vector<int> pool_counter_;   // counter of all GPUs of a pool; -1 when it has no option
  std::vector<double> free_bytes_;  // by pool: of one GPU, for layers, at most
  double longest_layer_s_ = 0;
  double gpus_ = 0;
};

}  // namespace sailor
