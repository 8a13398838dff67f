// Pipelines of different stages: for a target time of the slowest stage, every pool uses the TP degrees that
// hold most layers per GPU within it, until the model is complete. Covers pools of several types and zones in
// one pipeline, and different TP degrees in one pool, without enumerating their combinations.
#pragma once

#include <vector>

#include "planner/search/native/shapes.h"

namespace sailor::native {

struct CompositionOptions {
  double slacks[4] = {1, 1.15, 1.4, 1.8};  // targets, as multiples of the minimum that the GPUs allow
  double memory = 0.9;                     // fraction of a GPU's memory for weights and optimizer states
  int bisections = 16;
};

// Shapes of `of.pipelines` pipelines over some of the pools, in that order, for the microbatch size, chunks
// and recomputation of `of`; without estimates. Empty if the pools cannot hold the model, or only with stages
// that take `most_s` or longer for a microbatch. `zero`: the most that replicas may share.
std::vector<TemplateShape> compositions(Estimates& estimates, const std::vector<int>& pools,
                                        const TemplateShape& of, Zero zero, double most_s,
                                        const CompositionOptions& options);

}  // namespace sailor::native
