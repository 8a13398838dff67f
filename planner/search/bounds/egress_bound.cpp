#include "planner/search/bounds/egress_bound.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {
constexpr double kZoneSlack = 1e-9;  // relative; a zone that is as good as large enough is large enough
}  // namespace

EgressBound::EgressBound(const ClassCosts& costs, const std::vector<ResourceLimit>& limits)
    : costs_(costs.stage()) {
  const Resources& resources = costs.resources();
  std::map<std::string, std::vector<int>> options;  // by zone
  for (int o : costs_.options()) options[resources.options[o].zone].push_back(o);
  zones_ = options.size();
  if (zones_ < 2) return;
  message_charge_ = kNever;
  for (const auto& [from, ups] : options)
    for (const auto& [to, downs] : options) {
      if (from == to) continue;
      if (resources.options[ups[0]].region == resources.options[downs[0]].region)
        pairs_.emplace_back(ups[0], downs[0]);
      for (int layer = 1; layer < costs_.layers(); ++layer) {
        if (layer > 1 && costs_.same_messages(layer - 1, layer)) continue;
        for (int up : ups)
          message_charge_ = std::min(message_charge_, costs_.message_charge(up, downs[0], layer));
      }
    }
  matters_ = message_charge_ > 0 && message_charge_ < kNever;
  for (const auto& [zone, of_zone] : options)
    for (const ResourceLimit& limit : limits) {
      std::map<int, double> most;  // of one GPU, by pool
      for (int o : of_zone) {
        const Option& option = resources.options[o];
        double& per_gpu = most[option.pool];
        per_gpu = std::max(per_gpu, limit.weight[o] / option.shape.gpus());
      }
      double held = 0;
      for (const auto& [pool, per_gpu] : most) held += resources.free_gpus(pool) * per_gpu;
      held_.push_back(held);
    }
}

EgressBound::Prices EgressBound::prices(int replicas, double microbatches) const {
  Prices out{static_cast<double>(replicas), kNever, microbatches * replicas * message_charge_};
  if (replicas > 1)
    for (const auto& [a, b] : pairs_)
      out.rings_charge =
          std::min(out.rings_charge, 2 * costs_.sync_charge(a, b, 0, costs_.layers(), replicas));
  return out;
}

double EgressBound::charge(const Prices& prices, const double* used, const double* more,
                           size_t limits) const {
  const size_t of_zone = held_.size() / zones_;
  double least_outside = 1;  // of some stage's replicas, wherever another one is
  for (size_t zone = 0; zone < zones_; ++zone) {
    double outside = 0;
    for (size_t limit = 0; limit < limits; ++limit) {
      const double use = (used[limit] + more[limit]) * prices.replicas;
      if (use > 0) outside = std::max(outside, 1 - held_[zone * of_zone + limit] * (1 + kZoneSlack) / use);
    }
    least_outside = std::min(least_outside, outside);
    if (least_outside <= 0) return 0;
  }
  const double pipelines = std::ceil(prices.replicas * (least_outside - kZoneSlack));
  return std::min(prices.rings_charge, prices.messages_charge * pipelines / prices.replicas);
}

}  // namespace sailor
