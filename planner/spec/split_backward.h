// The backward of a stage in two parts (Qi et al., 2024, "Zero Bubble Pipeline Parallelism"): the gradient of
// its input, for which the stage before waits; and, `weight_delay` microbatches later, the gradients of its
// blocks' weights, for which nobody waits. The first and the last layer of a model compute both at once.
//
// Stage i, counted from 0, delays at most i microbatches: then it holds no more of them than the first one.
#pragma once

namespace sailor {

// A weight delay: the backward of the stage is not split.
inline constexpr int kWholeBackward = -1;

}  // namespace sailor
