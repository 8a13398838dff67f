// The search itself as a rival: on parts of the cluster, with more effort, and under the published cost
// model. A plan for a part is a plan for the whole, so the search on the whole should be no worse.
#pragma once

#include "planner/search/search.h"
#include "tests/bench/native/judge.h"

namespace sailor::bench {

// The options of every search of the bench: those of `sailor plan`, with `factor` times the usual effort.
struct SearchEffort {
  // A safety net: searches end by effort.
  double time_limit_s = 20;

  PlanOptions options(double factor) const;
};

// A part of a cluster, by name, without the other nodes.
struct ClusterPart {
  std::string name;
  Snapshot snapshot;
};
// Every proper subset of the GPU types, every zone if there are several, half and three quarters of each
// type.
std::vector<ClusterPart> cluster_parts(const Snapshot& snapshot);

// The best plan of the native search on the parts, with `factor` times the effort each; with `whole` also on
// the whole cluster.
std::optional<Rival> best_on_parts(Judge& judge, const SearchEffort& effort, double factor, bool whole);

// The best, under the native model, of the candidates of the published model's search.
std::optional<Rival> best_published(Judge& judge, const SearchEffort& effort, double factor);

}  // namespace sailor::bench
