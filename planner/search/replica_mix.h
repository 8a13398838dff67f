// How the D replicas of one stage are spread over options: runs of equal replicas, in the order of the
// pipelines. Most stages have one run; several arise when no option has enough GPUs for all replicas (zones
// of a region, leftovers of a type).
#pragma once

#include <utility>
#include <vector>

#include "planner/search/stage_costs.h"

namespace sailor {

struct ReplicaMix {
  struct Run {
    int option = 0;
    int replicas = 0;
  };
  std::vector<Run> runs;
  std::vector<int> use;  // by counter of Resources
  double usd_per_s = 0;
  int smallest_tp = 1;
  std::vector<std::pair<int, int>>
      neighbours;  // distinct ordered pairs of options of replicas j, j+1 (no wrap)
  std::vector<std::pair<int, int>>
      ring;  // every ordered pair of unlike neighbours with the wrap, for transfer costs

  int option_of(int replica) const;
};

ReplicaMix make_mix(const Resources& resources, std::vector<ReplicaMix::Run> runs);

// The mixes that the search considers for `replicas` replicas: every option alone; when the number of
// multisets of options is at most `exhaustive_limit`, all of them (`*exhaustive` tells); else options of one
// type and TP degree spread over the zones of a region, and pairs of options of one zone. Deterministic
// order.
std::vector<ReplicaMix> replica_mixes(const StageCosts& costs, const Resources& resources, int replicas,
                                      int exhaustive_limit, bool* exhaustive);

// Distinct pairs of options that face each other when `upstream` feeds `downstream`, replica j to replica j.
std::vector<std::pair<int, int>> facing_pairs(const ReplicaMix& upstream, const ReplicaMix& downstream);

}  // namespace sailor
