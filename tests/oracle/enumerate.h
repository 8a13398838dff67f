// Exhaustive enumeration of the paper's search space: every microbatch size, every contiguous cut, every
// number of replicas, every ordered assignment of (GPU type, zone, tensor-parallel degree) to them.
//
// Why it is feasible and exact:
// - All replicas of a plan form a grid, pipelines by stages. Time and cost consist of parts within a pipeline
//   (compute, messages), which do not depend on the order of pipelines, and of parts between neighbouring
//   pipelines (gradient sync, the ring's egress), which do. So multisets of pipelines are enumerated first
//   (pipelines in ascending order only), and then the orders of each multiset; pipelines with equal (type,
//   zone) in every stage are equivalent to their neighbours, and not distinguished there.
// - A partial grid or order is dropped only (a) if the GPUs or the nodes cannot hold it, or (b) if a known
//   plan is at least as fast and as cheap as the partial sum. Time and cost are sums and maxima of
//   non-negative parts, so further parts only increase them; missing parts count with the minimum over all
//   usable GPUs (for gradient sync: every replica has a neighbour).
//
// Every dropped plan is covered by one of the front (to one part in 1e12), so the front has the optimum of
// both objectives under any limit on the other.
#pragma once

#include <cstdint>

#include "tests/oracle/front.h"
#include "tests/oracle/problem.h"

namespace sailor::oracle {

struct Enumeration {
  ParetoFront front;
  int64_t partial_grids = 0;  // cells set
  int64_t grids = 0;          // complete multisets of pipelines
  int64_t orders = 0;         // complete orders of them
};

Enumeration enumerate(const Problem& problem);

}  // namespace sailor::oracle
