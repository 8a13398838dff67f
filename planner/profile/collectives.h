// Times of collectives from link curves. Pure.
#pragma once

#include "planner/profile/network_profile.h"

namespace sailor {

// Ranks that reduce or gather a tensor along a ring.
struct Ring {
  int ranks = 1;
  int nodes = 1;       // number of nodes of these ranks
  double sharing = 1;  // rings that leave the busiest of these nodes concurrently, this one included
  const LinkCurve* intra = nullptr;  // between GPUs of a node; may be null if every rank has its own node
  const LinkCurve* inter = nullptr;  // between nodes, the slowest pair; may be null on one node
};

// One pass around the ring, which is a reduce-scatter or an all-gather of `bytes` (the whole tensor): ranks -
// 1 steps of bytes / ranks. The bandwidth is that of the slowest step; GPUs of a ring in one node share the
// step that leaves it among their network cards. The latency is that of each step's own link (the model of
// NCCL's tuning.cc). 0 for one rank.
double ring_pass_s(const Ring& ring, double bytes);
// Two passes around the ring.
double ring_all_reduce_s(const Ring& ring, double bytes);
// The faster of the ring and a double binary tree over the nodes, between which libraries choose: 2
// log2(nodes) steps of latency between nodes, each byte sent twice.
double all_reduce_s(const Ring& ring, double bytes);

}  // namespace sailor
