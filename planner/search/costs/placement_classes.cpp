#include "planner/search/costs/placement_classes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace sailor {

std::vector<int> PlacementClass::options() const {
  std::vector<int> all;
  for (const Group& group : groups) all.insert(all.end(), group.options.begin(), group.options.end());
  return all;
}

namespace {

// Options of a region that differ in their zone only, in the order of the options.
std::vector<PlacementClass::Group> groups_of(const StageCosts& costs, const Resources& resources) {
  std::map<std::tuple<std::string, std::string, ReplicaShape>, size_t> at;
  std::vector<PlacementClass::Group> groups;
  for (int o : costs.options()) {
    const Option& option = resources.options[o];
    const auto [it, added] = at.try_emplace({option.region, option.gpu_type, option.shape}, groups.size());
    if (added) groups.push_back({o, option.shape, {}});
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

// Placement classes whose slowest replica is of any group; with `one_type`, mixes of one type as well.
void add_mixes(const StageCosts& costs, const Resources& resources, bool one_type,
               std::vector<PlacementClass>& classes) {
  const std::vector<PlacementClass::Group> groups = groups_of(costs, resources);
  for (const PlacementClass::Group& slowest : groups) {
    const Option& slow = resources.options[slowest.option];
    PlacementClass placement{PlacementClass::Kind::mixed, {slowest}, slowest.shape, !one_type};
    std::set<ReplicaShape> shapes{slowest.shape};
    for (const PlacementClass::Group& other : groups) {
      const Option& fast = resources.options[other.option];
      if (other.option == slowest.option || fast.region != slow.region ||
          (!one_type && fast.gpu_type == slow.gpu_type) || !ever_as_fast(costs, other.option, slowest.option))
        continue;
      placement.groups.push_back(other);
      if (other.shape < slowest.shape) shapes.insert(other.shape);
    }
    for (const ReplicaShape& least : shapes) {
      PlacementClass one = placement;
      one.least = least;
      std::erase_if(one.groups, [&](const PlacementClass::Group& group) { return group.shape < least; });
      if (one_type || one.groups.size() > 1) classes.push_back(std::move(one));
    }
  }
}

}  // namespace

std::vector<PlacementClass> pure_classes(const StageCosts& costs, const Resources& resources) {
  std::vector<PlacementClass> classes;
  for (const PlacementClass::Group& group : groups_of(costs, resources))
    for (int o : group.options)
      classes.push_back({PlacementClass::Kind::pure, {{o, group.shape, {o}}}, group.shape});
  return classes;
}

std::vector<PlacementClass> spread_classes(const StageCosts& costs, const Resources& resources) {
  std::vector<PlacementClass> classes;
  for (const PlacementClass::Group& group : groups_of(costs, resources))
    classes.push_back({group.options.size() > 1 ? PlacementClass::Kind::spread : PlacementClass::Kind::pure,
                       {group},
                       group.shape});
  return classes;
}

std::vector<PlacementClass> mixed_classes(const StageCosts& costs, const Resources& resources) {
  std::vector<PlacementClass> classes;
  add_mixes(costs, resources, false, classes);
  return classes;
}

std::vector<PlacementClass> all_classes(const StageCosts& costs, const Resources& resources) {
  std::vector<PlacementClass> classes = pure_classes(costs, resources);
  add_mixes(costs, resources, true, classes);
  return classes;
}

}  // namespace sailor
