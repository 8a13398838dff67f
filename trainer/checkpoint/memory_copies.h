// Copies of ranks' snapshots in the host memory of others, so that the loss of a rank, or of a node with all
// its ranks, need not cost a read of the disk when nobody else holds what was lost.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "trainer/checkpoint/state_snapshot.h"
#include "trainer/comm/communicator.h"

namespace sailor {

// By rank: who keeps the copy of its snapshot. Every rank keeps one; it is of a rank of another node, unless
// one node has more than half of all ranks (then of as many as can be), and never its own, unless it is
// alone.
std::vector<int> copy_keepers(const RankLayout& layout);

// Sends `own` to the rank that keeps its copy, and receives the one that this rank keeps into `kept`, which
// is whole when it has arrived, and not when this host has no room for it. `kept` is not whole in between.
// All ranks of the plan call it; `group` has them in their order. Returns the number of ranks without room.
// Throws CommError.
int64_t exchange_copies(Communicator& group, const RankLayout& layout, const StateSnapshot& own,
                        StateSnapshot& kept);

}  // namespace sailor
