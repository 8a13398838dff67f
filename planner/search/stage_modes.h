// What a stage of D replicas can be, before it is decided which replica runs where.
//
// A stage waits for its slowest replica. So a mode names the slowest option, and every option of the region
// that is at least as fast on the stage's layers, and fits, may serve as well: an exponential number of mixes
// becomes a few modes per option (a few, because sums over replicas depend on the smallest TP degree among
// them, and a mode names that too). What a mode costs is then a lower bound over all its mixes, and exact
// when there is only one.
//     pure     all replicas alike: one GPU type, zone and TP degree
//     spread   one GPU type and TP degree over the zones of a region
//     mixed    anything in the region that is not slower and has at least the smallest TP degree
// Immutable once built.
#pragma once

#include <vector>

#include "planner/search/stage_costs.h"

namespace sailor {

struct StageMode {
  enum class Kind { pure, spread, mixed };
  // Options that compute and remember alike: one type and TP degree in one region, by zone.
  struct Group {
    int option = 0;  // the first of them, for times and memory
    int tp = 1;
    std::vector<int> options;
  };
  Kind kind = Kind::pure;
  std::vector<Group> groups;   // [0]: the slowest; the others may stand in where they are not slower
  int least_tp = 1;            // of the replicas; one of them has it
  bool several_types = false;  // surely; else perhaps
  bool refines = false;        // what another mode bounds

  int slowest() const { return groups.front().option; }
};

// One for each option; for each type and TP degree of a region.
std::vector<StageMode> pure_modes(const StageCosts& costs, const Resources& resources);
std::vector<StageMode> spread_modes(const StageCosts& costs, const Resources& resources);
// Stages over several GPU types. Replicas of one type with unlike TP degrees are left out: the larger degree
// uses more GPUs, and the stage waits for the smaller one all the same.
std::vector<StageMode> mixed_modes(const StageCosts& costs, const Resources& resources);
// Everything, for exact realizations: pure stages, and stages of any mix at all.
std::vector<StageMode> all_modes(const StageCosts& costs, const Resources& resources);

}  // namespace sailor
