// Times of collectives and messages from link curves. Pure.
#pragma once

#include "planner/profile/network_profile.h"

namespace sailor {

// Ranks that sum or gather a tensor along a ring.
struct Ring {
  int ranks = 1;
  int nodes = 1;       // on which they are
  double sharing = 1;  // rings that leave the busiest of these nodes at the same time, this one included
  const LinkCurve* intra =
      nullptr;  // between GPUs of a node; may be absent when every rank has a node of its own
  const LinkCurve* inter = nullptr;  // between nodes, the slowest pair; may be absent on one node
};

// One pass around the ring, which is what a reduce-scatter or an all-gather of `bytes` (the whole tensor)
// takes: ranks - 1 steps of bytes / ranks. The bandwidth is that of the slowest step; a ring's GPUs in a node
// share the step that leaves it among their network cards. The latency is that of each step's own link (the
// model of NCCL's tuning.cc). 0 for one rank.
double ring_pass_s(const Ring& ring, double bytes);
// Two passes.
double ring_all_reduce_s(const Ring& ring, double bytes);
// The faster of the ring and a double tree over the nodes, which libraries choose from: 2 log2(nodes) steps
// of latency between nodes, each byte sent twice.
double all_reduce_s(const Ring& ring, double bytes);

// A tensor of `bytes` from a TP group of `from` GPUs to one of `to` GPUs: scatter-gather, approximated by one
// message split evenly over min(from, to) parallel links (the gather inside the receiving group is much
// faster and left out). `senders` GPUs of the node send at once, these included.
double scatter_gather_s(const LinkCurve& link, double bytes, int from, int to, double senders);

}  // namespace sailor
