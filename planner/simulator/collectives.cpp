#include "planner/simulator/collectives.h"

#include <algorithm>

namespace sailor {

double ring_all_reduce_s(const LinkCurve& slowest, double bytes, int ranks) {
  if (ranks < 2) return 0;
  return 2.0 * (ranks - 1) * slowest.time_s(bytes / ranks);
}

double scatter_gather_s(const LinkCurve& link, double bytes, int from, int to) {
  return link.time_s(bytes / std::min(from, to));
}

}  // namespace sailor
