#include "planner/search/costs/class_costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {}

ClassCosts::ClassCosts(const StageCosts& costs, const Resources& resources,
                       std::vector<PlacementClass> classes)
    : costs_(costs),
      resources_(resources),
      classes_(std::move(classes)),
      lowest_(resources.options.size(),
              std::vector<int16_t>((costs.layers() + 1) * (costs.layers() + 1), -1)) {
  tabulate_messages();
  const size_t n = classes_.size(), layers = costs.layers();
  for (const PlacementClass& placement : classes_) {
    const std::vector<int> all = placement.options();
    // The slowest option takes part in the reduction; its neighbour may be any possible option.
    std::vector<std::pair<int, int>> pairs;
    const std::string& type = resources.options[placement.slowest()].gpu_type;
    for (int slow : placement.groups.front().options)
      for (int other : all) {
        // Where there are several types, the slowest's meets another somewhere.
        if (placement.several_types && resources.options[other].gpu_type == type) continue;
        pairs.emplace_back(slow, other);
        pairs.emplace_back(other, slow);
      }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    std::vector<std::pair<int, int>> across;
    for (int a : all)
      for (int b : all)
        if (resources.options[a].zone != resources.options[b].zone) across.emplace_back(a, b);
    neighbours_.push_back(over_distinct_links(pairs));
    across_zones_.push_back(over_distinct_links(across));
    most_in_a_zone_.push_back(most_in_a_zone(placement));
    sync_like_.push_back(first_that_syncs_alike(static_cast<int>(sync_like_.size())));
  }
  fast_enough_.resize(n * (layers + 1) * layers);
  segments_.resize(n * (layers + 1));
  for (size_t placement = 0; placement < n; ++placement)
    for (size_t end = 1; end <= layers; ++end) {
      std::vector<Segment>& segments = segments_[placement * (layers + 1) + end];
      for (int first = static_cast<int>(end) - 1; first >= 0; --first) {
        const uint32_t bits = fast_enough(static_cast<int>(placement), first, static_cast<int>(end));
        fast_enough_[(placement * (layers + 1) + end) * layers + first] = bits;
        if (segments.empty() || segments.back().groups != bits)
          segments.push_back({first, first, bits});
        else
          segments.back().lowest = first;
      }
    }
}

void ClassCosts::tabulate_messages() {
  std::vector<std::vector<int>> all,
      smallest;  // by placement class: options; those of the smallest TP degree
  for (const PlacementClass& placement : classes_) {
    all.push_back(placement.options());
    smallest.push_back(all.back());
    std::erase_if(smallest.back(), [&](int o) { return resources_.options[o].shape != placement.least; });
  }
  boundary_kind_.assign(costs_.layers(), 0);
  std::vector<int> boundaries;  // the first of each kind
  for (int layer = 1; layer < costs_.layers(); ++layer) {
    const auto like = std::find_if(boundaries.begin(), boundaries.end(),
                                   [&](int other) { return costs_.same_messages(other, layer); });
    boundary_kind_[layer] = like - boundaries.begin();
    if (like == boundaries.end()) boundaries.push_back(layer);
  }
  boundary_kinds_ = boundaries.size();
  const size_t n = classes_.size(), options = resources_.options.size();
  activation_s_.assign(n * n * boundary_kinds_, kNever);
  gradient_s_ = activation_s_;
  message_charge_.assign(activation_s_.size(), -1);
  least_activation_s_.assign(n, kNever);
  least_gradient_s_ = least_activation_s_;
  // By upstream and downstream option.
  std::vector<double> forward_s(options * options), backward_s(options * options);
  const auto least = [&](const std::vector<double>& s, const std::vector<int>& ups,
                         const std::vector<int>& downs) {
    double least_s = kNever;
    for (int a : ups)
      for (int b : downs) least_s = std::min(least_s, s[a * options + b]);
    return least_s;
  };
  // The slowest upstream faces someone, and so does one of the smallest degree; downstream as well.
  const auto at_least = [&](const std::vector<double>& s, size_t up, size_t down) {
    return std::max({least(s, classes_[up].groups.front().options, all[down]),
                     least(s, all[up], classes_[down].groups.front().options),
                     least(s, smallest[up], all[down]), least(s, all[up], smallest[down])});
  };
  for (int layer : boundaries) {
    for (int a : costs_.options())
      for (int b : costs_.options()) {
        forward_s[a * options + b] = costs_.activation_s(a, b, layer);
        backward_s[a * options + b] = costs_.gradient_s(b, a, layer);
      }
    for (size_t up = 0; up < n; ++up)
      for (size_t down = 0; down < n; ++down) {
        const size_t at = message(static_cast<int>(up), static_cast<int>(down), layer);
        activation_s_[at] = at_least(forward_s, up, down);
        gradient_s_[at] = at_least(backward_s, up, down);
        least_activation_s_[up] = std::min(least_activation_s_[up], activation_s_[at]);
        least_gradient_s_[down] = std::min(least_gradient_s_[down], gradient_s_[at]);
      }
  }
}

double ClassCosts::message_charge(int upstream, int downstream, int layer) {
  double& charge = message_charge_[message(upstream, downstream, layer)];
  if (charge >= 0) return charge;
  charge = kNever;
  for (int a : classes_[upstream].options())
    for (int b : classes_[downstream].options())
      charge = std::min(charge, costs_.message_charge(a, b, layer));
  return charge;
}

// Pairs over the same link are one.
std::vector<std::pair<int, int>> ClassCosts::over_distinct_links(
    const std::vector<std::pair<int, int>>& pairs) const {
  std::vector<std::pair<int, int>> distinct;
  for (const auto& pair : pairs)
    if (std::none_of(distinct.begin(), distinct.end(), [&](const auto& seen) {
          return costs_.sync_link(seen.first, seen.second) == costs_.sync_link(pair.first, pair.second);
        }))
      distinct.push_back(pair);
  return distinct;
}

int ClassCosts::most_in_a_zone(const PlacementClass& placement) const {
  std::map<int, int> smallest;  // GPUs of a replica by pool
  for (const PlacementClass::Group& group : placement.groups)
    for (int o : group.options) {
      const auto [it, added] = smallest.try_emplace(resources_.options[o].pool, group.shape.gpus());
      it->second = std::min(it->second, group.shape.gpus());
    }
  std::map<std::string, int> replicas;
  for (const auto& [pool, gpus] : smallest)
    replicas[resources_.pools[pool].zone] += resources_.free_gpus(pool) / gpus;
  int most = 0;
  for (const auto& [zone, n] : replicas) most = std::max(most, n);
  return most;
}

int ClassCosts::first_that_syncs_alike(int placement) const {
  const auto links = [&](const std::vector<std::pair<int, int>>& pairs) {
    std::set<const LinkCurve*> out;
    for (const auto& [a, b] : pairs) out.insert(costs_.sync_link(a, b));
    return out;
  };
  for (int other = 0; other < placement; ++other)
    if (classes_[other].least == classes_[placement].least &&
        most_in_a_zone_[other] == most_in_a_zone_[placement] &&
        links(neighbours_[other]) == links(neighbours_[placement]) &&
        links(across_zones_[other]) == links(across_zones_[placement]))
      return other;
  return placement;
}

double ClassCosts::sync_s(int placement, int first, int end, int replicas) const {
  if (replicas < 2) return 0;
  const auto least = [&](const std::vector<std::pair<int, int>>& pairs) {
    double s = kNever;
    for (const auto& [a, b] : pairs)
      s = std::min(s, costs_.sync_s(a, b, classes_[placement].least.parts(), first, end, replicas));
    return s;
  };
  const double within = least(neighbours_[placement]);
  return replicas > most_in_a_zone_[placement] ? std::max(within, least(across_zones_[placement])) : within;
}

int ClassCosts::find_lowest_first(int option, int end, int in_flight) {
  const auto fits = [&](int first) { return costs_.fits(option, first, end, in_flight); };
  // More layers need more memory.
  int first = 0, most = end;
  while (first < most) {
    const int middle = (first + most) / 2;
    if (fits(middle))
      most = middle;
    else
      first = middle + 1;
  }
  return lowest_[option][in_flight * (costs_.layers() + 1) + end] = static_cast<int16_t>(first);
}

void ClassCosts::find_lowest_in_time(int placement, bool behind, double longest_s, int16_t* lowest) const {
  const double to_next = behind ? least_activation_s(placement) : 0;
  const double to_previous = least_gradient_s(placement);
  int in_time = 1;  // of stages that are not the first of all
  for (int end = behind ? 1 : costs_.layers(); end <= costs_.layers(); ++end) {
    const auto late = [&](int first) {
      return compute_s(placement, first, end) + to_next + (first > 0 ? to_previous : 0) > longest_s;
    };
    while (in_time < end && late(in_time)) ++in_time;
    lowest[end] = static_cast<int16_t>(late(0) ? in_time : 0);
  }
}

uint32_t ClassCosts::fast_enough(int placement, int first, int end) const {
  const std::vector<PlacementClass::Group>& groups = classes_[placement].groups;
  uint32_t bits = 1;
  const double slowest = compute_s(placement, first, end) * (1 + kSameTime);
  bool smallest = groups[0].shape == classes_[placement].least;
  for (size_t g = 1; g < groups.size(); ++g)
    if (costs_.compute_s(groups[g].option, first, end) <= slowest) {
      if (g < 32) bits |= 1u << g;
      smallest = smallest || groups[g].shape == classes_[placement].least;
    }
  if (classes_[placement].several_types && bits == 1 && groups.size() <= 32) return 0;
  return smallest ? bits : 0;
}

uint32_t ClassCosts::allowed(int placement, int first, int end, int in_flight) {
  const std::vector<PlacementClass::Group>& groups = classes_[placement].groups;
  const int layers = costs_.layers();
  uint32_t bits = fast_enough_[(static_cast<size_t>(placement) * (layers + 1) + end) * layers + first];
  if (bits == 0 || lowest_first(groups[0].option, end, in_flight) > first) return 0;
  if (groups.size() == 1) return bits;
  bool smallest = groups.size() > 32;
  for (size_t g = 0; g < groups.size() && g < 32; ++g) {
    if (!(bits >> g & 1u)) continue;
    if (lowest_first(groups[g].option, end, in_flight) > first)
      bits &= ~(1u << g);
    else
      smallest = smallest || groups[g].shape == classes_[placement].least;
  }
  if (classes_[placement].several_types && bits == 1 && groups.size() <= 32) return 0;
  return (bits & 1u) && smallest ? bits : 0;
}

template <typename Weight>
double ClassCosts::least_of_options(int placement, uint32_t bits, Weight weight) const {
  double least = kNever;
  const std::vector<PlacementClass::Group>& groups = classes_[placement].groups;
  for (size_t g = 0; g < groups.size(); ++g)
    if (PlacementClass::serves(bits, g))
      for (int o : groups[g].options) least = std::min(least, weight(o));
  return least;
}

double ClassCosts::least_weight(int placement, uint32_t bits, const ResourceLimit& limit) const {
  return least_of_options(placement, bits, [&](int o) { return limit.weight[o]; });
}

double ClassCosts::least_work_charge(int placement, uint32_t bits, int first, int end) const {
  return least_of_options(placement, bits, [&](int o) { return costs_.work_charge(o, first, end); });
}

double ClassCosts::least_charge_per_s(int placement, uint32_t bits) const {
  return least_of_options(placement, bits, [&](int o) { return resources_.options[o].rate.idle_per_s; });
}

}  // namespace sailor
