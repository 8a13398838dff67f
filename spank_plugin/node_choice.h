// Planning with fewer nodes than are free (--nodes): the planner counts GPUs, not nodes, so it runs once for
// every choice of nodes. Pure.
#pragma once

#include <functional>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/snapshot.h"

namespace sailor {

// All choices of max_nodes nodes (one choice with all, if there are no more), as snapshots; nodes with the
// same zone, partition, GPU type and free GPUs are equivalent. If there are more than `most` choices, nodes
// of a kind are taken in larger and larger groups until there are not; complete says whether all choices are
// covered.
struct NodeChoices {
  std::vector<Snapshot> snapshots;
  bool complete = true;
};
NodeChoices choose_nodes(const Snapshot& snapshot, int max_nodes, size_t most = 64);

// The better of two results under the objective; statistics and rejected candidates are added, and the bound
// holds for both.
SearchResult better_of(SearchResult a, SearchResult b, Objective objective);

}  // namespace sailor
