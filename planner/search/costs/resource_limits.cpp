#include "planner/search/costs/resource_limits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace sailor {
namespace {

// Which weighted sums of GPUs decide whether replicas that may be of several types can all be had.
//
// Stage i needs D replicas; one of type p takes t_ip GPUs of its supply C_p (t_ip infinite where p is not
// allowed). Fractional replicas exist if and only if for all weights y >= 0
//     sum_i D min_p(y_p t_ip) <= sum_p y_p C_p                              (Farkas).
// Only extreme rays y matter: there the minima tie along a tree over the types, so that along its edges y_p /
// y_q is t_iq / t_ip of some stage. Those ratios are collected from the placement classes.

// For a pair of supplies (p, q): every ratio y_q / y_p at which some stage is indifferent between them.
using Ratios = std::map<std::pair<size_t, size_t>, std::set<double>>;

Ratios ratios_of(const StageCosts& costs, const Resources& resources,
                 const std::vector<PlacementClass>& classes) {
  Ratios ratios;
  for (const PlacementClass& placement : classes) {
    std::set<std::map<size_t, int>> seen;  // smallest TP degree by supply
    for (int layer = 0; layer < costs.layers(); ++layer) {
      std::map<size_t, int> smallest;
      for (const PlacementClass::Group& group : placement.groups)
        if (costs.compute_s(group.option, layer, layer + 1) <=
            costs.compute_s(placement.slowest(), layer, layer + 1) * (1 + kSameTime)) {
          const auto [it, added] =
              smallest.try_emplace(resources.options[group.option].supply, group.shape.gpus());
          it->second = std::min(it->second, group.shape.gpus());
        }
      if (!seen.insert(smallest).second) continue;
      for (const auto& [p, t_p] : smallest)
        for (const auto& [q, t_q] : smallest)
          if (p != q) ratios[{p, q}].insert(static_cast<double>(t_p) / t_q);
    }
  }
  return ratios;
}

// How much of the model a GPU of each supply computes per second, at best, of 1 for the fastest.
std::vector<double> speeds_of(const StageCosts& costs, const Resources& resources) {
  std::vector<double> speeds;
  for (const Supply& supply : resources.supplies) {
    double least = 0;  // GPU seconds
    for (int o : supply.options) {
      if (std::find(costs.options().begin(), costs.options().end(), o) == costs.options().end()) continue;
      const double gpu_s = costs.compute_s(o, 0, costs.layers()) * resources.options[o].shape.gpus();
      if (least == 0 || gpu_s < least) least = gpu_s;
    }
    speeds.push_back(least > 0 ? 1 / least : 0);
  }
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  for (double& speed : speeds) speed = fastest > 0 ? speed / fastest : 1;
  return speeds;
}

// Grows every ray by every supply that ties with one of it, breadth first.
std::vector<std::map<size_t, double>> rays_of(const Ratios& ratios, size_t supplies, size_t most) {
  std::vector<std::map<size_t, double>> rays;
  std::set<std::map<size_t, double>> seen;
  for (size_t s = 0; s < supplies; ++s) rays.push_back({{s, 1.0}});
  for (size_t next = 0; next < rays.size() && rays.size() < most; ++next) {
    const std::map<size_t, double> ray = rays[next];
    for (const auto& [pair, values] : ratios) {
      const auto& [p, q] = pair;
      if (!ray.count(p) || ray.count(q)) continue;
      for (double ratio : values) {
        std::map<size_t, double> grown = ray;
        grown[q] = grown[p] * ratio;
        // One of all its multiples.
        double largest = 0;
        for (const auto& [s, weight] : grown) largest = std::max(largest, weight);
        for (auto& [s, weight] : grown) weight /= largest;
        if (rays.size() < most && seen.insert(grown).second) rays.push_back(std::move(grown));
      }
    }
  }
  return rays;
}

}  // namespace

std::vector<ResourceLimit> resource_limits(const StageCosts& costs, const Resources& resources,
                                           const std::vector<PlacementClass>& classes, bool zones_alone,
                                           size_t most) {
  std::vector<ResourceLimit> limits;
  const std::vector<Supply>& supplies = resources.supplies;
  std::vector<std::map<size_t, double>> rays =
      rays_of(ratios_of(costs, resources, classes), supplies.size(), most);
  if (supplies.size() > 1) {
    // Not needed to be sufficient, but it bounds well: all GPUs by speed.
    const std::vector<double> speeds = speeds_of(costs, resources);
    std::map<size_t, double> by_speed;
    for (size_t s = 0; s < supplies.size(); ++s) by_speed[s] = speeds[s];
    if (std::find(rays.begin(), rays.end(), by_speed) == rays.end()) rays.insert(rays.begin(), by_speed);
  }
  for (const auto& ray : rays) {
    ResourceLimit limit;
    limit.weight.assign(resources.options.size(), 0);
    for (const auto& [s, weight] : ray) {
      limit.capacity += weight * supplies[s].gpus;
      for (int o : supplies[s].options) limit.weight[o] = weight * resources.options[o].shape.gpus();
    }
    limits.push_back(std::move(limit));
  }
  for (size_t c = 0; c < resources.capacity.size(); ++c) {
    std::set<int> pools;
    ResourceLimit limit;
    limit.capacity = resources.capacity[c];
    for (size_t o = 0; o < resources.options.size(); ++o) {
      limit.weight.push_back(resources.use[o][c]);
      if (resources.use[o][c] > 0) pools.insert(resources.options[o].pool);
    }
    bool whole_supply = false;
    for (const Supply& supply : supplies) {
      std::set<int> of_supply;
      for (int o : supply.options) of_supply.insert(resources.options[o].pool);
      whole_supply = whole_supply || of_supply == pools;
    }
    const bool known = std::any_of(limits.begin(), limits.end(), [&](const ResourceLimit& other) {
      return other.weight == limit.weight && other.capacity <= limit.capacity;
    });
    if (!known && (zones_alone || whole_supply || pools.size() > 1)) limits.push_back(std::move(limit));
  }
  return limits;
}

std::vector<ResourceLimit> money_prices(const Resources& resources,
                                        const std::vector<PlacementClass>& classes, size_t most) {
  std::map<std::pair<int, double>, int> ties;  // stages that are indifferent, by supply and y
  for (const PlacementClass& placement : classes)
    for (const PlacementClass::Group& cheap : placement.groups)
      for (const PlacementClass::Group& dear : placement.groups) {
        const Option &from = resources.options[cheap.option], &to = resources.options[dear.option];
        const double y = (to.rate.idle_per_s - from.rate.idle_per_s) / cheap.shape.gpus();
        if (y > 0 && from.supply != to.supply) ++ties[{from.supply, y}];
      }
  std::vector<std::pair<int, std::pair<int, double>>> ranked;
  for (const auto& [tie, stages] : ties) ranked.emplace_back(stages, tie);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<ResourceLimit> out;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i) {
    const auto& [supply, y] = ranked[i].second;
    ResourceLimit money;
    money.capacity = std::numeric_limits<double>::infinity();
    for (const Option& option : resources.options)
      money.weight.push_back(option.rate.idle_per_s +
                             (option.supply == supply ? y * option.shape.gpus() : 0));
    money.credit_per_s = y * resources.supplies[supply].gpus;
    out.push_back(std::move(money));
  }
  return out;
}

}  // namespace sailor
