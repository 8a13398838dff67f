#include "planner/search/skeleton_charges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// How long a stage sums gradients at least when it is spread over zones.
double sync_across_zones_s(const SkeletonProblem& p, const Label& stage) {
  const std::vector<Option>& options = p.costs.resources().options;
  const StageMode& mode = p.costs.modes()[stage.mode];
  double least = kNever;
  for (const StageMode::Group& one : mode.groups)
    for (const StageMode::Group& other : mode.groups)
      for (int a : one.options)
        for (int b : other.options)
          if (options[a].zone != options[b].zone)
            least = std::min(least, p.costs.stage().sync_s(a, b, mode.least_tp, stage.first_layer,
                                                           stage.end_layer, p.replicas));
  return least;
}

}  // namespace

std::vector<SkeletonCharge> skeleton_charges(const SkeletonProblem& problem, const EgressFloor& egress,
                                             const Label& label, double without_sync_s, double usd_per_s,
                                             double transfer_usd) {
  const auto at = [&](double sync_s, double traffic_usd) {
    const double s = without_sync_s + sync_s;
    return SkeletonCharge{s, s * usd_per_s + traffic_usd};
  };
  const SkeletonCharge whatever = at(label.sync_s, transfer_usd);
  if (!egress.matters()) return {whatever};
  EgressFloor::Prices spread = egress.prices(problem.replicas, problem.microbatches), apart = spread;
  spread.messages_usd = apart.rings_usd = kNever;
  const std::vector<double> no_more(problem.limits.size(), 0);
  const double apart_usd = egress.usd(apart, label.used, no_more.data(), no_more.size());
  if (apart_usd <= 0) return {whatever};  // one zone suffices
  const double spread_usd = egress.usd(spread, label.used, no_more.data(), no_more.size());
  double spread_sync_s = label.sync_s;
  for (const Label* l = &label; l != nullptr && std::isfinite(spread_usd); l = l->next)
    spread_sync_s = std::max(spread_sync_s, sync_across_zones_s(problem, *l));
  std::vector<SkeletonCharge> ways;
  for (const auto& [sync_s, traffic_usd] :
       {std::pair{label.sync_s, apart_usd}, std::pair{spread_sync_s, spread_usd}}) {
    const SkeletonCharge way = at(sync_s, std::max(label.transfer_usd, traffic_usd));
    if (std::isfinite(way.usd)) ways.push_back(way);
  }
  return ways;
}

}  // namespace sailor
