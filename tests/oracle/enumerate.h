// Exhaustive enumeration of the paper's search space: every microbatch size, every contiguous cut, every
// number of replicas, every ordered assignment of (GPU type, zone, tensor-parallel degree) to them.
//
// What makes it feasible, and why it is exact:
// - All replicas of a plan form a grid, pipelines by stages. Time and cost are made of what is found within a
//   pipeline (compute, messages), which does not depend on the order of pipelines, and of what stands between
//   neighbouring pipelines (gradient sync, the ring's egress), which does. So multisets of pipelines are
//   enumerated first (pipelines in ascending order only), and the orders of each multiset then; pipelines
//   that are alike in (type, zone) of every stage are alike to their neighbours, and not told apart there.
// - A partial grid or order is given up only (a) when the GPUs or the nodes cannot hold it, or (b) when a
// plan
//   already found is no slower and no dearer than what stands so far. Time and cost are sums and maxima of
//   non-negative parts, so what is added later only makes them larger; parts that do not stand yet count with
//   the least that any usable GPU would take (of gradient sync: every replica has a neighbour).
// Every plan so passed over is covered by one of the front (to one part in 1e12), so the front holds the
// optimum of both objectives under any limit on the other.
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
