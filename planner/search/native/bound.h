// Lower bounds that hold for every plan under the native cost model, mixed, interleaved and however placed.
//
// For each microbatch size, number of pipelines D, and with or without a sharded optimizer, what all groups
// of GPUs do together is held against what has to be done: M microbatches of W units of work (group_ways.h).
// In a pipeline with m of them, where group i takes t_i for one (f_i of it forward) and q groups behind it
// take S_i together, 1F1B ends no earlier than both of
//
//     path + (m - 1 - q) t_i + S_i      its last forward comes after m - 1 - q backwards and a wait for the
//                                       first gradient; then that microbatch goes to the end and back
//     path + (m - 1) t_i - min(S_i, q f_i)      until the first gradient it does q + 1 forwards at most
//
// where the path is the sum of all t. Of the first, with weights that make all groups count alike: if v_k is
// at least what group k does in T - path, and at least W, then the v_k of a pipeline add up to (m - 1) W. (If
// not, take weights w_k = (v_k - sum of the w before) / (m - P + k), k = 0 ... P - 1: they are not negative,
// and add up to sum of v / (m - 1).) Of the second: the same without the W, for v_k / (1 - forward share). So
// over all pipelines, with a price p for memory, of which a pipeline needs room for W:
//
//     sum over GPUs of the best (v + p room) per GPU  >=  W (M - D + p D)
//
// and the least T for which that holds at every p is a bound. Pipelines are told apart by how long their path
// is, as slow groups cannot be part of short ones. Without waiting (interleaved) it is m W and the whole of
// T. Besides, a group's own gradient sums come after its last backward began, the first layer's sums and the
// optimizer come after everything, no more groups have a layer than there are layers, and the longest layer
// is done by some group for the busiest pipeline.
//
// All D are bounded roughly, then those with the least bounds closely. Messages between stages, and that the
// stages of a node share its cards, are left out.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/space.h"

namespace sailor::native {

struct Bound {
  double iteration_s = 0;
  double usd = 0;
};

// Of all plans with what is offered; infinite when no microbatch size has times.
Bound least_possible(const Space& space, const PlanFeatures& offered);

}  // namespace sailor::native
