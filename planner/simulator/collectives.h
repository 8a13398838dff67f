// Times of collectives and messages from link curves. Pure.
#pragma once

#include "planner/profile/network_profile.h"

namespace sailor {

// Ring all-reduce of `bytes` per rank over `ranks` ranks: 2 (ranks - 1) steps of bytes / ranks, each as slow
// as `slowest`. 0 for one rank. The latency of every step is in the curve.
double ring_all_reduce_s(const LinkCurve& slowest, double bytes, int ranks);

// A tensor of `bytes` from a TP group of `from` GPUs to one of `to` GPUs: scatter-gather, approximated by one
// message split evenly over min(from, to) parallel links (the gather inside the receiving group is much
// faster and left out).
double scatter_gather_s(const LinkCurve& link, double bytes, int from, int to);

}  // namespace sailor
