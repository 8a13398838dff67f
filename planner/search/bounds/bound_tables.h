// What the searches of every D over the same placement classes and limits share, so that none of them sets it
// up again: uses of resources, times of gradient sums, and the shortest bottlenecks. Filled as it is asked,
// so one thread at a time; answers do not depend on the order of questions.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "planner/search/bounds/egress_bound.h"
#include "planner/search/bounds/suffix_resource_bound.h"

namespace sailor {

// The limits in another order: first those on all GPUs and on single pools as they come, then those that bind
// when all layers have to be held, so that a few of them bound nearly as well as all.
std::vector<ResourceLimit> most_binding_first(ClassCosts& costs, std::vector<ResourceLimit> limits);

class BoundTables {
 public:
  // Both must outlive this.
  BoundTables(ClassCosts& costs, const std::vector<ResourceLimit>& limits);

  StageUses& uses() { return uses_; }
  const StageSync& sync(int replicas);
  const EgressBound& egress();
  // No pipeline that holds all layers within `capacity` (by limit, for one replica) has a bottleneck shorter
  // than this; infinite when none has one of at most `most_s`. At least as short as the truth by up to
  // kFloorStep, and more where memory binds.
  double bottleneck_floor_s(const std::vector<double>& capacity, double most_s);

  static constexpr double kFloorStep = 0.008;

 private:
  // What stages need at least with bottlenecks at steps of a geometric grid, which does not depend on D.
  const std::vector<double>& need_at(int step);

  ClassCosts& costs_;
  const std::vector<ResourceLimit>& limits_;
  std::unique_ptr<EgressBound> egress_;  // once it is asked for
  StageUses uses_;
  const StageSync no_sync_;                         // of one replica: nothing to sum
  std::map<int, std::unique_ptr<StageSync>> sync_;  // by replicas
  SuffixResourceBound suffix_;
  std::map<int, std::vector<double>> need_;  // by step, then limit
  double shortest_s_ = 0;                    // below every bottleneck; step 0 of the grid
};

}  // namespace sailor
