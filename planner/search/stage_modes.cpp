#include "planner/search/stage_modes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace sailor {
namespace {

// Options of a region that differ in their zone only, in the order of the options.
std::vector<StageMode::Group> groups_of(const StageCosts& costs, const Resources& resources) {
  std::map<std::tuple<std::string, std::string, int, Recompute>, size_t> at;
  std::vector<StageMode::Group> groups;
  for (int o : costs.options()) {
    const Option& option = resources.options[o];
    const auto [it, added] =
        at.try_emplace({option.region, option.gpu_type, option.tp, option.recompute}, groups.size());
    if (added) groups.push_back({o, option.tp, {}});
    groups[it->second].options.push_back(o);
  }
  return groups;
}

// Is there a run of layers that `a` computes at least as fast as `b`? Then there is a single layer.
bool ever_as_fast(const StageCosts& costs, int a, int b) {
  for (int layer = 0; layer < costs.layers(); ++layer)
    if (costs.compute_s(a, layer, layer + 1) <= costs.compute_s(b, layer, layer + 1) * (1 + kSameTime))
      return true;
  return false;
}

// Keeps the groups that can sum gradients with the slowest, directly or through others: replicas form a ring.
void keep_connected(const StageCosts& costs, std::vector<StageMode::Group>& groups) {
  const auto linked = [&](const StageMode::Group& a, const StageMode::Group& b) {
    for (int x : a.options)
      for (int y : b.options)
        if (costs.sync_link(x, y) != nullptr && costs.sync_link(y, x) != nullptr) return true;
    return false;
  };
  std::vector<bool> reached(groups.size(), false);
  reached[0] = true;
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = 0; b < groups.size(); ++b)
        if (reached[a] && !reached[b] && linked(groups[a], groups[b])) reached[b] = grown = true;
  }
  std::vector<StageMode::Group> kept;
  for (size_t g = 0; g < groups.size(); ++g)
    if (reached[g]) kept.push_back(groups[g]);
  groups = std::move(kept);
}

// Modes whose slowest replica is of any group; with `one_type`, mixes of one type as well.
void add_mixes(const StageCosts& costs, const Resources& resources, bool one_type,
               std::vector<StageMode>& modes) {
  const std::vector<StageMode::Group> groups = groups_of(costs, resources);
  for (const StageMode::Group& slowest : groups) {
    const Option& slow = resources.options[slowest.option];
    StageMode mode{StageMode::Kind::mixed, {slowest}, slowest.tp, !one_type};
    std::set<int> degrees{slowest.tp};
    for (const StageMode::Group& other : groups) {
      const Option& fast = resources.options[other.option];
      if (other.option == slowest.option || fast.region != slow.region ||
          (!one_type && fast.gpu_type == slow.gpu_type) || !ever_as_fast(costs, other.option, slowest.option))
        continue;
      mode.groups.push_back(other);
      if (other.tp < slowest.tp) degrees.insert(other.tp);
    }
    for (int degree : degrees) {
      StageMode one = mode;
      one.least_tp = degree;
      std::erase_if(one.groups, [&](const StageMode::Group& group) { return group.tp < degree; });
      keep_connected(costs, one.groups);
      if (one_type || one.groups.size() > 1) modes.push_back(std::move(one));
    }
  }
}

}  // namespace

std::vector<StageMode> pure_modes(const StageCosts& costs, const Resources& resources) {
  std::vector<StageMode> modes;
  for (const StageMode::Group& group : groups_of(costs, resources))
    for (int o : group.options) modes.push_back({StageMode::Kind::pure, {{o, group.tp, {o}}}, group.tp});
  return modes;
}

std::vector<StageMode> spread_modes(const StageCosts& costs, const Resources& resources) {
  std::vector<StageMode> modes;
  for (const StageMode::Group& group : groups_of(costs, resources))
    modes.push_back(
        {group.options.size() > 1 ? StageMode::Kind::spread : StageMode::Kind::pure, {group}, group.tp});
  return modes;
}

std::vector<StageMode> mixed_modes(const StageCosts& costs, const Resources& resources) {
  std::vector<StageMode> modes;
  add_mixes(costs, resources, false, modes);
  return modes;
}

std::vector<StageMode> all_modes(const StageCosts& costs, const Resources& resources) {
  std::vector<StageMode> modes = pure_modes(costs, resources);
  add_mixes(costs, resources, true, modes);
  return modes;
}

}  // namespace sailor
