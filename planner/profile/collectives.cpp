#include "planner/profile/collectives.h"

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

double members_per_node(const Ring& ring) {
  return static_cast<double>(ring.ranks) / ring.nodes;
}

// The slowest step that moves `bytes`, without latency.
double slowest_transfer_s(const Ring& ring, double bytes) {
  double slowest = 0;
  if (ring.nodes < ring.ranks && ring.intra != nullptr) slowest = ring.intra->step_transfer_s(bytes, 1);
  if (ring.nodes > 1 && ring.inter != nullptr) {
    // What was measured with one card says nothing of the others.
    const double members = ring.inter->knows_cards() ? members_per_node(ring) : 1;
    slowest = std::max(slowest, ring.inter->step_transfer_s(bytes / members, ring.sharing * members));
  }
  return slowest;
}

}  // namespace

double ring_pass_s(const Ring& ring, double bytes) {
  if (ring.ranks < 2 || !(bytes > 0)) return 0;
  double latency_s = 0;
  if (ring.intra != nullptr) latency_s += (ring.ranks - ring.nodes) * ring.intra->step_latency_s();
  if (ring.inter != nullptr) latency_s += (ring.nodes - 1) * ring.inter->step_latency_s();
  return latency_s + (ring.ranks - 1) * slowest_transfer_s(ring, bytes / ring.ranks);
}

double ring_all_reduce_s(const Ring& ring, double bytes) {
  return 2 * ring_pass_s(ring, bytes);
}

double all_reduce_s(const Ring& ring, double bytes) {
  const double around_s = ring_all_reduce_s(ring, bytes);
  if (ring.nodes < 2 || ring.inter == nullptr) return around_s;
  double tree_s = 2 * std::ceil(std::log2(ring.nodes)) * ring.inter->step_latency_s() +
                  2 * slowest_transfer_s(ring, bytes);
  if (ring.intra != nullptr) tree_s += 2 * members_per_node(ring) * ring.intra->step_latency_s();
  return std::min(around_s, tree_s);
}

}  // namespace sailor
