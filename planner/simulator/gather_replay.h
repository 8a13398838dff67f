// When our trainer has handed out updated weights, over network cards that the ranks of a node share. Pure.
//
// A rank gathers its buckets one after the other, from the last layer down: it sends its part to the other
// holders, and goes on when it has theirs. So one that waits for a holder with other buckets before has sent
// its part already, and slows what these buckets send. The messages on a card share it evenly, and none is
// faster than its rank's port.
#pragma once

#include <vector>

#include "planner/simulator/mesh_sync.h"

namespace sailor::native {

// By class of ranks: when all its buckets are there. `from_s`: when it has updated its part; `part`: bytes of
// weights for each byte of the sums, whose parts the same members send; `nodes`: number of node classes.
std::vector<double> replay_gathers(const MeshSums& sums, const std::vector<double>& from_s, double part,
                                   int nodes);

}  // namespace sailor::native
