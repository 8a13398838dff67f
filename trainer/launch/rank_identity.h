// Shows which rank a process is: in its title for `ps` and `top`, and in its environment for libraries and
// child processes (SAILOR_RANK, SAILOR_PIPELINE, SAILOR_STAGE, SAILOR_TP_RANK, SAILOR_GENERATION).
#pragma once

#include <string>

#include "planner/plan/rank_layout.h"

namespace sailor {

// Call as soon as the rank is known. It changes the environment: do not call while other threads may read it.
void announce_rank(const RankSlot& slot, int generation);
// For later generations: changes the title only, at any time.
void announce_generation(const RankSlot& slot, int generation);

// `sailor: rank 3 p0 s1 t0/2 g1`: pipeline, stage, rank in and size of the TP group, generation. Short,
// because the title must fit in the length of the original command line.
std::string rank_title(const RankSlot& slot, int generation);

}  // namespace sailor
