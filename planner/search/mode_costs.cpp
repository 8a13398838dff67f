#include "planner/search/mode_costs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
}

ModeCosts::ModeCosts(const StageCosts& costs, const Resources& resources, std::vector<StageMode> modes,
                     Replicas replicas)
    : costs_(costs), resources_(resources), modes_(std::move(modes)), lowest_(resources.options.size()) {
  const size_t n = modes_.size(), layers = costs.layers();
  for (const StageMode& mode : modes_) {
    std::vector<int> all;
    for (const StageMode::Group& group : mode.groups)
      all.insert(all.end(), group.options.begin(), group.options.end());
    // The slowest option is somewhere in the sum; beside it stands anything that may.
    std::vector<std::pair<int, int>> pairs;
    const std::string& type = resources.options[mode.slowest()].gpu_type;
    for (int slow : mode.groups.front().options)
      for (int other : all) {
        // Where there are several types, the slowest's meets another somewhere.
        if (mode.several_types && resources.options[other].gpu_type == type) continue;
        pairs.emplace_back(slow, other);
        pairs.emplace_back(other, slow);
      }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    std::vector<std::pair<int, int>> across;
    for (int a : all)
      for (int b : all)
        if (resources.options[a].zone != resources.options[b].zone) across.emplace_back(a, b);
    std::vector<int> smallest;
    for (int o : all)
      if (resources.options[o].tp == mode.least_tp) smallest.push_back(o);
    smallest_.push_back(std::move(smallest));
    facing_.push_back(std::move(all));
    neighbours_.push_back(over_distinct_links(pairs));
    across_zones_.push_back(over_distinct_links(across));
    most_in_a_zone_.push_back(replicas == Replicas::alike ? most_in_a_zone(mode)
                                                          : std::numeric_limits<int>::max());
    sync_like_.push_back(first_that_syncs_alike(static_cast<int>(sync_like_.size())));
  }
  fast_enough_.resize(n * (layers + 1) * layers);
  segments_.resize(n * (layers + 1));
  for (size_t mode = 0; mode < n; ++mode)
    for (size_t end = 1; end <= layers; ++end) {
      std::vector<Segment>& segments = segments_[mode * (layers + 1) + end];
      for (int first = static_cast<int>(end) - 1; first >= 0; --first) {
        const uint32_t bits = fast_enough(static_cast<int>(mode), first, static_cast<int>(end));
        fast_enough_[(mode * (layers + 1) + end) * layers + first] = bits;
        if (segments.empty() || segments.back().groups != bits)
          segments.push_back({first, first, bits});
        else
          segments.back().lowest = first;
      }
    }
  tabulate_messages();
  least_activation_s_.assign(n, kNever);
  least_gradient_s_.assign(n, kNever);
  for (size_t mode = 0; mode < n; ++mode)
    for (size_t other = 0; other < n; ++other)
      for (size_t kind = 0; kind < messages_; ++kind) {
        least_activation_s_[mode] =
            std::min(least_activation_s_[mode], activation_s_[(mode * n + other) * messages_ + kind]);
        least_gradient_s_[mode] =
            std::min(least_gradient_s_[mode], gradient_s_[(other * n + mode) * messages_ + kind]);
      }
}

void ModeCosts::tabulate_messages() {
  const size_t n = modes_.size(), layers = costs_.layers(), options = resources_.options.size();
  message_of_.assign(layers, 0);
  for (size_t layer = 1; layer < layers; ++layer) {
    const int l = static_cast<int>(layer);
    int like = 1;
    while (like < l && !costs_.same_messages(like, l)) ++like;
    message_of_[layer] = like < l ? message_of_[like] : messages_++;
  }
  activation_s_.assign(n * n * messages_, kNever);
  gradient_s_.assign(n * n * messages_, kNever);
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
    return std::max({least(s, modes_[up].groups.front().options, facing_[down]),
                     least(s, facing_[up], modes_[down].groups.front().options),
                     least(s, smallest_[up], facing_[down]), least(s, facing_[up], smallest_[down])});
  };
  size_t tabulated = 0;
  for (size_t layer = 1; layer < layers; ++layer) {
    const int l = static_cast<int>(layer);
    if (tabulated > message_of_[layer]) continue;
    ++tabulated;
    for (int a : costs_.options())
      for (int b : costs_.options()) {
        forward_s[a * options + b] = costs_.activation_s(a, b, l);
        backward_s[a * options + b] = costs_.gradient_s(b, a, l);
      }
    for (size_t up = 0; up < n; ++up)
      for (size_t down = 0; down < n; ++down) {
        const size_t at = (up * n + down) * messages_ + message_of_[layer];
        activation_s_[at] = at_least(forward_s, up, down);
        gradient_s_[at] = at_least(backward_s, up, down);
      }
  }
}

// Pairs over the same link are one.
std::vector<std::pair<int, int>> ModeCosts::over_distinct_links(
    const std::vector<std::pair<int, int>>& pairs) const {
  std::vector<std::pair<int, int>> distinct;
  for (const auto& pair : pairs)
    if (std::none_of(distinct.begin(), distinct.end(), [&](const auto& seen) {
          return costs_.sync_link(seen.first, seen.second) == costs_.sync_link(pair.first, pair.second);
        }))
      distinct.push_back(pair);
  return distinct;
}

int ModeCosts::most_in_a_zone(const StageMode& mode) const {
  std::map<int, int> smallest;  // TP degree by pool
  for (const StageMode::Group& group : mode.groups)
    for (int o : group.options) {
      const auto [it, added] = smallest.try_emplace(resources_.options[o].pool, group.tp);
      it->second = std::min(it->second, group.tp);
    }
  std::map<std::string, int> replicas;
  for (const auto& [pool, tp] : smallest)
    replicas[resources_.pools[pool].zone] += resources_.free_gpus(pool) / tp;
  int most = 0;
  for (const auto& [zone, n] : replicas) most = std::max(most, n);
  return most;
}

int ModeCosts::first_that_syncs_alike(int mode) const {
  const auto links = [&](const std::vector<std::pair<int, int>>& pairs) {
    std::set<const LinkCurve*> out;
    for (const auto& [a, b] : pairs) out.insert(costs_.sync_link(a, b));
    return out;
  };
  for (int other = 0; other < mode; ++other)
    if (modes_[other].least_tp == modes_[mode].least_tp && most_in_a_zone_[other] == most_in_a_zone_[mode] &&
        links(neighbours_[other]) == links(neighbours_[mode]) &&
        links(across_zones_[other]) == links(across_zones_[mode]))
      return other;
  return mode;
}

double ModeCosts::least_message_usd(int upstream, int downstream, int layer) const {
  double usd = kNever;
  for (int a : facing_[upstream])
    for (int b : facing_[downstream]) {
      usd = std::min(usd, costs_.message_usd(a, b, layer));
      if (usd <= 0) return usd;
    }
  return usd;
}

double ModeCosts::sync_s(int mode, int first, int end, int replicas) const {
  if (replicas < 2) return 0;
  const auto least = [&](const std::vector<std::pair<int, int>>& pairs) {
    double s = kNever;
    for (const auto& [a, b] : pairs)
      s = std::min(s, costs_.sync_s(a, b, modes_[mode].least_tp, first, end, replicas));
    return s;
  };
  const double within = least(neighbours_[mode]);
  return replicas > most_in_a_zone_[mode] ? std::max(within, least(across_zones_[mode])) : within;
}

int ModeCosts::find_lowest_first(int option, int end, int in_flight, int replicas) {
  const int layers = costs_.layers();
  std::vector<int16_t>& table = lowest_[option];
  const size_t kind = static_cast<size_t>(costs_.memory_replicas(replicas)) - 1;
  const size_t of_a_kind = static_cast<size_t>(layers + 1) * (layers + 1);
  if (table.size() < (kind + 1) * of_a_kind) table.resize((kind + 1) * of_a_kind, -1);
  int16_t& known = table[kind * of_a_kind + static_cast<size_t>(in_flight) * (layers + 1) + end];
  if (known < 0) {
    const auto fits = [&](int first) {
      return costs_.fits(option, first, end, in_flight, costs_.memory_replicas(replicas));
    };
    // More layers need more memory; but the first stage of all has no messages to hold.
    int first = 1, most = end;
    while (first < most) {
      const int middle = (first + most) / 2;
      if (fits(middle))
        most = middle;
      else
        first = middle + 1;
    }
    known = static_cast<int16_t>(first == 1 && fits(0) ? 0 : first);
  }
  return known;
}

uint32_t ModeCosts::fast_enough(int mode, int first, int end) const {
  const std::vector<StageMode::Group>& groups = modes_[mode].groups;
  uint32_t bits = 1;
  const double slowest = compute_s(mode, first, end) * (1 + kSameTime);
  bool smallest = groups[0].tp == modes_[mode].least_tp;
  for (size_t g = 1; g < groups.size(); ++g)
    if (costs_.compute_s(groups[g].option, first, end) <= slowest) {
      if (g < 32) bits |= 1u << g;
      smallest = smallest || groups[g].tp == modes_[mode].least_tp;
    }
  if (modes_[mode].several_types && bits == 1 && groups.size() <= 32) return 0;
  return smallest ? bits : 0;
}

uint32_t ModeCosts::allowed(int mode, int first, int end, int in_flight, int replicas) {
  const std::vector<StageMode::Group>& groups = modes_[mode].groups;
  const int layers = costs_.layers();
  uint32_t bits = fast_enough_[(static_cast<size_t>(mode) * (layers + 1) + end) * layers + first];
  if (bits == 0 || lowest_first(groups[0].option, end, in_flight, replicas) > first ||
      needless(groups[0].option, first, end, in_flight, replicas))
    return 0;
  if (groups.size() == 1) return bits;
  bool smallest = groups.size() > 32;
  for (size_t g = 0; g < groups.size() && g < 32; ++g) {
    if (!(bits >> g & 1u)) continue;
    if (lowest_first(groups[g].option, end, in_flight, replicas) > first ||
        needless(groups[g].option, first, end, in_flight, replicas))
      bits &= ~(1u << g);
    else
      smallest = smallest || groups[g].tp == modes_[mode].least_tp;
  }
  if (modes_[mode].several_types && bits == 1 && groups.size() <= 32) return 0;
  return (bits & 1u) && smallest ? bits : 0;
}

double ModeCosts::least_weight(int mode, uint32_t bits, const ResourceLimit& limit) const {
  double least = kNever;
  const std::vector<StageMode::Group>& groups = modes_[mode].groups;
  for (size_t g = 0; g < groups.size(); ++g)
    if (g >= 32 || (bits >> g & 1u))
      for (int o : groups[g].options) least = std::min(least, limit.weight[o]);
  return least;
}

double ModeCosts::least_usd_per_s(int mode, uint32_t bits) const {
  double least = kNever;
  const std::vector<StageMode::Group>& groups = modes_[mode].groups;
  for (size_t g = 0; g < groups.size(); ++g)
    if (g >= 32 || (bits >> g & 1u))
      for (int o : groups[g].options) least = std::min(least, resources_.options[o].usd_per_s);
  return least;
}

}  // namespace sailor
