// Tells everybody who looks which rank a process is: `ps` and `top` by its title, libraries and what the rank
// starts by its environment (SAILOR_RANK, SAILOR_PIPELINE, SAILOR_STAGE, SAILOR_TP_RANK, SAILOR_GENERATION).
#pragma once

#include <string>

#include "planner/plan/rank_layout.h"

namespace sailor {

// To be called as soon as the rank is known. As all that changes the environment, not while other threads may
// read it.
void announce_rank(const RankSlot& slot, int generation);
// Of a later generation: changes the title only, at any time.
void announce_generation(const RankSlot& slot, int generation);

// `sailor: rank 3 p0 s1 t0/2 g1`: pipeline, stage, rank in and size of the TP group, generation. Short,
// because the title has no more room than the path of the program had.
std::string rank_title(const RankSlot& slot, int generation);

}  // namespace sailor
