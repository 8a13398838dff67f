// The plans that one would try without a planner: one TP degree, P stages, D pipelines, one microbatch size,
// layers split by speed, on each subset of the GPU types (with more than three: on each and on all together),
// and likewise of the zones; pipelines together on nodes or a stage's replicas together on nodes; with and
// without ZeRO-1, every recomputation that plans may use, interleave 1, 2 and 4.
//
// The most promising ones are simulated, in the order of an estimate (compute time of the slowest stage and
// of the bubble, messages between stages and gradient reduction at the rates of the links); on small clusters
// all of them are. Skipped:
// - D: of more than 24 possible values all but the largest, the largest that divides the microbatches, whole
//   nodes', three quarters, a half and a quarter of it; P: above 16 all but even numbers, multiples of 8, and
//   divisors of the number of blocks;
// - plans whose weights, gradients, optimizer states and activations alone do not fit (sound), and plans that
//   compute at least twice as long as the best one is estimated to take (near-sound);
// - all but the most promising fitting ones, up to the limit on simulations.
#pragma once

#include "tests/bench/native/judge.h"

namespace sailor::bench {

// The fastest fitting plan; nothing if none fits. Deterministic.
std::optional<Rival> best_uniform(Judge& judge, int64_t most_simulations);

// The fastest plan that combines pipelines of one uniform shape for each GPU type: the types differ in TP
// degree, stages and placement. From the most promising shapes of each type. Nothing if there is one type, or
// none fits.
std::optional<Rival> best_composed(Judge& judge);

// Every uniform plan that passes the estimate, most promising first, at most `most`: valid and placed, but
// possibly not fitting. For tests.
std::vector<Rival> uniform_plans_by_estimate(const PlanningContext& context, const PlanFeatures& allowed,
                                             size_t most);

}  // namespace sailor::bench
