// A hill climb over placed plans: random plans, random moves, accepted if not worse. It has no model of good
// plans and shares no code with planner/search, so it finds plans that the search's model misses.
//
// Moves: shift a layer boundary (in all pipelines, or in one); swap the GPUs of two stages, or move one to
// free GPUs; double or halve the TP degree of a stage, or the microbatch; add or remove a pipeline; merge two
// stages, or split one; pipelines of twice or half the length; move microbatches between pipelines; ZeRO-1;
// recompute a stage, in one pipeline or in all; interleave.
#pragma once

#include <cstdint>

#include "tests/bench/native/judge.h"

namespace sailor::bench {

struct ClimbOptions {
  uint64_t seed = 1;
  int starts = 10;
  int64_t simulations = 2000;  // maximum, over all starts
};

// The fastest fitting plan over all starts; nothing if none was found. Deterministic.
std::optional<Rival> hill_climb(Judge& judge, const ClimbOptions& options);

// From a plan that fits; nothing if no faster one is found.
std::optional<Rival> climb_from(Judge& judge, const Rival& start, uint64_t seed, int64_t simulations);

}  // namespace sailor::bench
