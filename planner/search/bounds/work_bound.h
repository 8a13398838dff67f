// Lower bounds that hold for every plan with one microbatch size and one D, mixed stages included. Pure.
#pragma once

#include "planner/search/costs/stage_costs.h"

namespace sailor {

class WorkBound {
 public:
  WorkBound(const StageCosts& costs, const Resources& resources);

  // Could all GPUs together hold D copies of the model, one microbatch each?
  bool memory_suffices(int replicas) const;
  // An iteration of `total` microbatches on D pipelines. published: the busiest pipeline runs ceil(total / D)
  // rounds at the bottleneck. native: shares may differ between pipelines, so only the work of all GPUs
  // together counts, and the busiest pipeline's longest layer.
  double iteration_s(int replicas, int64_t total) const;
  // GPUs are paid for as long as they compute, at least.
  double usd(int replicas, int64_t total) const;

 private:
  const StageCosts& costs_;
  double model_s_ = 0;     // one microbatch through the model, on all GPUs together, at best
  double free_bytes_ = 0;  // of all GPUs, for layers, at most
  double longest_layer_s_ = 0;
  double gpus_ = 0;
};

}  // namespace sailor
