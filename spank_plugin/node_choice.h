// Planning with fewer nodes than are free (--nodes): the planner counts GPUs, not nodes, so it is asked once
// for every way to choose that many. Pure.
#pragma once

#include <functional>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// Every choice of max_nodes nodes (all, when there are no more), as snapshots; nodes of the same zone,
// partition, GPU type and free GPUs count as alike. Where that would be more than `most` choices, nodes of a
// kind are taken in larger and larger bunches until it is not: complete tells whether none was left out.
struct NodeChoices {
  std::vector<Snapshot> snapshots;
  bool complete = true;
};
NodeChoices choose_nodes(const Snapshot& snapshot, int max_nodes, size_t most = 64);

// The better of two results under the objective; what was looked at and left out is summed, and a bound holds
// for both.
SearchResult better_of(SearchResult a, SearchResult b, Objective objective);

}  // namespace sailor
