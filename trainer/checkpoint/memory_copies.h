// Copies of ranks' snapshots in the host memory of other ranks, so that the loss of a rank, or of a node with
// all its ranks, does not require reading from disk.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "trainer/checkpoint/state_snapshot.h"
#include "trainer/comm/communicator.h"

namespace sailor {

// By rank: the rank that keeps the copy of its snapshot. Every rank keeps exactly one, of a rank on another
// node, unless one node has more than half of all ranks (then as many as possible), and never its own, unless
// there is only one rank.
std::vector<int> copy_keepers(const RankLayout& layout);

// Sends `own` to the rank that keeps its copy, and receives the copy for this rank into `kept`, which is
// complete afterwards, except if this host has no room for it. All ranks of the plan call it; `group` has
// them in their order. Returns the number of ranks without room. Throws CommError.
int64_t exchange_copies(Communicator& group, const RankLayout& layout, const StateSnapshot& own,
                        StateSnapshot& kept);

}  // namespace sailor
