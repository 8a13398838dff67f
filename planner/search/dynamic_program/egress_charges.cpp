#include "planner/search/dynamic_program/egress_charges.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMostListed = 8;  // stages; of more there are too many choices

// How long a stage sums gradients at least when it is spread over zones.
double sync_across_zones_s(const TemplateProblem& p, const Label& stage) {
  const std::vector<Option>& options = p.costs.resources().options;
  const PlacementClass& placement = p.costs.classes()[stage.placement];
  double least = kNever;
  for (const PlacementClass::Group& one : placement.groups)
    for (const PlacementClass::Group& other : placement.groups)
      for (int a : one.options)
        for (int b : other.options)
          if (options[a].zone != options[b].zone)
            least = std::min(least, p.costs.stage().sync_s(a, b, placement.least_tp, stage.first_layer,
                                                           stage.end_layer, p.replicas));
  return least;
}

// What `one` uses of every limit and those behind it do not: what the stage does by itself.
std::vector<double> use_of(const Label& one, size_t limits) {
  std::vector<double> use(one.used, one.used + limits);
  for (size_t limit = 0; one.next != nullptr && limit < limits; ++limit) use[limit] -= one.next->used[limit];
  return use;
}

// Some stages are spread over zones, the others all in one: in the same, or no pipeline is all in one.
class SomeSpread {
 public:
  SomeSpread(const TemplateProblem& problem, const EgressBound& egress, const Label& label)
      : egress_(egress), label_(label), prices_(egress.prices(problem.replicas, problem.microbatches)) {
    for (const Label* l = &label; l != nullptr; l = l->next)
      stages_.push_back({use_of(*l, problem.limits.size()),
                         egress.ring_usd(l->first_layer, l->end_layer, problem.replicas),
                         sync_across_zones_s(problem, *l)});
  }

  // Calls `visit` with seconds of the longest sum and USD for traffic, for every choice of stages.
  template <typename Visit>
  void for_all(Visit visit) const {
    std::vector<double> spread(stages_[0].use.size());
    std::vector<std::vector<double>> alone;
    for (uint32_t which = 0; which + 1 < 1u << stages_.size(); ++which) {
      std::fill(spread.begin(), spread.end(), 0);
      alone.clear();
      double sync_s = label_.sync_s, rings_usd = 0;
      for (size_t i = 0; i < stages_.size(); ++i) {
        if (!(which >> i & 1u)) {
          alone.push_back(stages_[i].use);
          continue;
        }
        for (size_t limit = 0; limit < spread.size(); ++limit) spread[limit] += stages_[i].use[limit];
        sync_s = std::max(sync_s, stages_[i].sync_across_s);
        rings_usd += stages_[i].ring_usd;
      }
      if (!std::isfinite(sync_s) || !std::isfinite(rings_usd)) continue;
      double messages_usd = egress_.messages_usd(prices_, label_.used, spread.data());
      if (messages_usd > prices_.messages_usd && alone.size() > 1 &&
          egress_.each_in_a_zone(alone, prices_.replicas))
        messages_usd = prices_.messages_usd;
      visit(sync_s, rings_usd + messages_usd);
    }
  }

 private:
  struct Stage {
    std::vector<double> use;  // by limit
    double ring_usd, sync_across_s;
  };

  const EgressBound& egress_;
  const Label& label_;
  const EgressBound::Prices prices_;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<EgressCharge> egress_charges(const TemplateProblem& problem, const EgressBound& egress,
                                         const Label& label, double without_sync_s, double usd_per_s,
                                         double transfer_usd) {
  const auto at = [&](double sync_s, double traffic_usd) {
    const double s = without_sync_s + sync_s;
    return EgressCharge{s, s * usd_per_s + traffic_usd};
  };
  const EgressCharge whatever = at(label.sync_s, transfer_usd);
  if (!egress.matters()) return {whatever};
  EgressBound::Prices spread = egress.prices(problem.replicas, problem.microbatches), apart = spread;
  spread.messages_usd = apart.rings_usd = kNever;
  const std::vector<double> no_more(problem.limits.size(), 0);
  const double apart_usd = egress.usd(apart, label.used, no_more.data(), no_more.size());
  if (apart_usd <= 0) return {whatever};  // one zone suffices
  const double spread_usd = egress.usd(spread, label.used, no_more.data(), no_more.size());
  double spread_sync_s = label.sync_s;
  for (const Label* l = &label; l != nullptr && std::isfinite(spread_usd); l = l->next)
    spread_sync_s = std::max(spread_sync_s, sync_across_zones_s(problem, *l));
  std::vector<EgressCharge> ways;
  const auto add = [&](double sync_s, double traffic_usd) {
    const EgressCharge way = at(sync_s, std::max(label.transfer_usd, traffic_usd));
    if (std::isfinite(way.usd)) ways.push_back(way);
  };
  add(spread_sync_s, spread_usd);
  if (label.stages <= kMostListed)
    SomeSpread(problem, egress, label).for_all(add);
  else
    add(label.sync_s, apart_usd);
  return ways;
}

}  // namespace sailor
