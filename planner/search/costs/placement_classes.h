// What a stage of D replicas can be, before it is decided which replica runs where.
//
// A stage waits for its slowest replica. So a placement class names the slowest option, and every option of
// the region that is at least as fast on the stage's layers, and fits, may serve as well: an exponential
// number of mixes becomes a few placement classes per option (a few, because sums over replicas depend on the
// smallest TP degree among them, and a placement class names that too). What a placement class costs is then
// a lower bound over all its mixes, and exact when there is only one.
//     pure     all replicas alike: one GPU type, zone and TP degree
//     spread   one GPU type and TP degree over the zones of a region
//     mixed    anything in the region that is not slower and has at least the smallest TP degree
// Immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/costs/stage_costs.h"

namespace sailor {

struct PlacementClass {
  enum class Kind { pure, spread, mixed };
  // Options that compute and remember alike: one type and TP degree in one region, by zone.
  struct Group {
    int option = 0;  // the first of them, for times and memory
    int tp = 1;
    std::vector<int> options;
  };
  Kind kind = Kind::pure;
  std::vector<Group> groups;   // [0]: the slowest; the others may serve where they are not slower
  int least_tp = 1;            // of the replicas; one of them has it
  bool several_types = false;  // surely; else perhaps
  bool refines = false;        // a part of another placement class, which is its lower bound

  int slowest() const { return groups.front().option; }
  std::vector<int> options() const;  // of all groups
  // Is groups[g] one of these, which are told by bits? Beyond 32 it always counts as one.
  static bool serves(uint32_t groups, size_t g) { return g >= 32 || (groups >> g & 1u); }
};

// One for each option; for each type and TP degree of a region.
std::vector<PlacementClass> pure_classes(const StageCosts& costs, const Resources& resources);
std::vector<PlacementClass> spread_classes(const StageCosts& costs, const Resources& resources);
// Stages over several GPU types. Replicas of one type with unlike TP degrees are not considered: the larger
// degree uses more GPUs, and the stage waits for the smaller one all the same.
std::vector<PlacementClass> mixed_classes(const StageCosts& costs, const Resources& resources);
// Everything, for exact assignments: pure stages, and stages of any mix at all.
std::vector<PlacementClass> all_classes(const StageCosts& costs, const Resources& resources);

}  // namespace sailor
