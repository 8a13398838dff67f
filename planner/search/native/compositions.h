// Pipelines put together of unlike stages: with a target for the slowest stage, every pool takes the TP
// degrees that hold most layers per GPU within it, until the model is complete. Covers pools of several types
// and zones in one pipeline, and unlike TP degrees in one pool, without listing their combinations.
#pragma once

#include <vector>

#include "planner/search/native/shapes.h"

namespace sailor::native {

struct CompositionOptions {
  double slacks[4] = {1, 1.15, 1.4, 1.8};  // targets, as multiples of the least that the GPUs allow
  double memory = 0.9;                     // part of a GPU's memory for weights and optimizer states
  int bisections = 16;
};

// Shapes of `of.pipelines` pipelines over some of the pools, in that order, for the microbatch size, chunks
// and recomputation of `of`; without estimates. Empty where the pools cannot hold the
// model, or not with stages that take less than `most_s` for a microbatch. `sharded`: optimizer states may
// be.
std::vector<TemplateShape> compositions(Estimates& estimates, const std::vector<int>& pools,
                                        const TemplateShape& of, bool sharded, double most_s,
                                        const CompositionOptions& options);

}  // namespace sailor::native
