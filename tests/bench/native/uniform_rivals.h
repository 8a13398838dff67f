// The plans that one would try without a planner: one TP degree, P stages, D pipelines, one microbatch size,
// layers cut by speed, on each subset of the GPU types (of more than three: on each and on all together), in
// the same way of the zones; pipelines together on nodes or a stage's replicas together on nodes; with and
// without ZeRO-1, every recomputation that plans may have, interleave 1, 2 and 4.
//
// The most promising ones are simulated, in the order of an estimate (compute time of the slowest stage and
// of the bubble, messages between stages and gradient sums at the rates of the links); on small clusters that
// is all of them. What that leaves out:
// - D: of more than 24 possible ones only the largest, the largest that divides the microbatches, whole
//   nodes', three quarters, a half and a quarter of it; P: above 16 only even ones and multiples of 8, and
//   divisors of the number of blocks;
// - plans whose weights, gradients, optimizer states and activations alone do not fit (sound), and plans
//   that compute at least twice as long as the best one is estimated (near-sound);
// - all but the most promising ones that fit, as many as the limit on simulations says.
#pragma once

#include "tests/bench/native/judge.h"

namespace sailor::bench {

// The fastest of them that fits; nothing when none does. Deterministic.
std::optional<Rival> best_uniform(Judge& judge, int64_t most_simulations);

// The fastest plan of pipelines of one uniform shape for each GPU type, side by side: the types differ in TP
// degree, stages and placement. Of the most promising shapes of each type. Nothing where there is one type,
// or none fits.
std::optional<Rival> best_composed(Judge& judge);

// Every uniform plan that the estimate leaves, most promising first, at most `most`: valid and placed, but
// they may not fit. For tests.
std::vector<Rival> uniform_plans_by_estimate(const PlanningContext& context, const PlanFeatures& allowed,
                                             size_t most);

}  // namespace sailor::bench
