// The possible compositions of a stage with D replicas, before the location of replicas is decided.
//
// A stage waits for its slowest replica. So a placement class names the slowest option, and every option of
// the region that fits and is at least as fast on the stage's layers is possible too. This turns an
// exponential number of mixes into a few placement classes per option (a few, because gradient reduction
// depends on the smallest TP degree, which a placement class names too). The cost of a placement class is a
// lower bound over all its mixes, and exact if there is only one.
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
  // Options with equal times and memory: one type and TP degree in one region, by zone.
  struct Group {
    int option = 0;  // the first option, for times and memory
    ReplicaShape shape;
    std::vector<int> options;
  };
  Kind kind = Kind::pure;
  std::vector<Group> groups;   // [0]: the slowest; the others are possible where they are not slower
  ReplicaShape least;          // smallest shape of the replicas; one of them has it
  bool several_types = false;  // certainly; false: possibly
  bool refines = false;        // part of another placement class, which is a lower bound for it

  int slowest() const { return groups.front().option; }
  std::vector<int> options() const;  // of all groups
  // Is groups[g] in this set of bits? Groups from 32 on always are.
  static bool serves(uint32_t groups, size_t g) { return g >= 32 || (groups >> g & 1u); }
};

// One for each option; and one for each type and TP degree of a region.
std::vector<PlacementClass> pure_classes(const StageCosts& costs, const Resources& resources);
std::vector<PlacementClass> spread_classes(const StageCosts& costs, const Resources& resources);
// Stages over several GPU types. Replicas of one type with different TP degrees are not considered: the
// larger degree uses more GPUs, while the stage still waits for the smaller one.
std::vector<PlacementClass> mixed_classes(const StageCosts& costs, const Resources& resources);
// All classes, for exact assignments: pure stages, and stages of any mix.
std::vector<PlacementClass> all_classes(const StageCosts& costs, const Resources& resources);

}  // namespace sailor
