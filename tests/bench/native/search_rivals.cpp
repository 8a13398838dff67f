#include "tests/bench/native/search_rivals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "planner/inputs/search_request.h"

namespace sailor::bench {
namespace {

template <typename Keep>
Snapshot part_of(const Snapshot& snapshot, Keep keep) {
  Snapshot out = snapshot;
  std::erase_if(out.nodes, [&](const SnapshotNode& node) { return !keep(node); });
  return out;
}

// Nodes of the type in order of names, up to that fraction of its free GPUs.
Snapshot with_part_of_type(const Snapshot& snapshot, const std::string& type, double part) {
  size_t all = 0, kept = 0;
  for (const SnapshotNode& node : snapshot.nodes)
    if (node.gpu_type == type) all += node.free_gpus.size();
  const double most = part * static_cast<double>(all);
  return part_of(snapshot, [&](const SnapshotNode& node) {
    if (node.gpu_type != type) return true;
    if (static_cast<double>(kept + node.free_gpus.size()) > most) return false;
    kept += node.free_gpus.size();
    return true;
  });
}

// The best of what the search offers on a part of the judge's cluster.
std::optional<Rival> best_found(Judge& judge, const ClusterPart& part, const PlanOptions& options) {
  const PlanningContext& whole = judge.context();
  const PlanningContext context{whole.job, part.snapshot, whole.catalog, whole.profiles, whole.framework};
  std::optional<Rival> best;
  for (const Candidate& candidate : search(context, options).candidates)
    if (const std::optional<Verdict> verdict = judge.verdict(candidate.plan); verdict && verdict->fits())
      keep_faster(best, Rival{part.name, candidate.plan, verdict->iteration_s});
  return best;
}

}  // namespace

PlanOptions SearchEffort::options(double factor) const {
  SearchRequest request;
  request.effort = factor;
  request.time_limit_s = std::max(1.0, factor) * time_limit_s;
  request.explain = false;
  return plan_options(request, SiteConfig());
}

std::vector<ClusterPart> cluster_parts(const Snapshot& snapshot) {
  std::set<std::string> type_set, zones;
  for (const SnapshotNode& node : snapshot.nodes) {
    type_set.insert(node.gpu_type);
    zones.insert(node.zone);
  }
  const std::vector<std::string> types(type_set.begin(), type_set.end());
  std::vector<ClusterPart> parts;
  for (size_t mask = 1; mask + 1 < size_t{1} << types.size(); ++mask) {
    std::set<std::string> kept;
    for (size_t t = 0; t < types.size(); ++t)
      if (mask >> t & 1) kept.insert(types[t]);
    parts.push_back(
        {fmt::format("search only {}", fmt::join(kept, "+")),
         part_of(snapshot, [&](const SnapshotNode& node) { return kept.contains(node.gpu_type); })});
  }
  if (zones.size() > 1)
    for (const std::string& zone : zones)
      parts.push_back({fmt::format("search only {}", zone),
                       part_of(snapshot, [&](const SnapshotNode& node) { return node.zone == zone; })});
  for (const std::string& type : types)
    for (const double part : {0.5, 0.75}) {
      ClusterPart of{fmt::format("search {} of {}", part, type), with_part_of_type(snapshot, type, part)};
      if (!of.snapshot.nodes.empty() && of.snapshot.nodes.size() < snapshot.nodes.size())
        parts.push_back(std::move(of));
    }
  return parts;
}

std::optional<Rival> best_on_parts(Judge& judge, const SearchEffort& effort, double factor, bool whole) {
  std::vector<ClusterPart> parts = cluster_parts(judge.context().snapshot);
  if (whole) parts.push_back({"search with more effort", judge.context().snapshot});
  std::optional<Rival> best;
  for (const ClusterPart& part : parts) {
    keep_faster(best, best_found(judge, part, effort.options(factor)));
  }
  return best;
}

std::optional<Rival> best_published(Judge& judge, const SearchEffort& effort, double factor) {
  PlanOptions options = effort.options(factor);
  options.space = SearchSpace::paper;
  options.cost_model = CostModel::published;
  return best_found(judge, {"published model", judge.context().snapshot}, options);
}

}  // namespace sailor::bench
