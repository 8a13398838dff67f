// Tables that the searches of all D over the same placement classes and limits share: resource uses, times of
// gradient reduction, and the shortest bottlenecks. Filled on demand, so not thread-safe; results do not
// depend on the order of queries.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "planner/search/bounds/egress_bound.h"
#include "planner/search/bounds/suffix_resource_bound.h"

namespace sailor {

// The limits in another order: first those on all GPUs and on single pools in their order, then those that
// are tightest when all layers must be held, so that a few of them bound nearly as well as all.
std::vector<ResourceLimit> most_binding_first(ClassCosts& costs, std::vector<ResourceLimit> limits);

class BoundTables {
 public:
  // Both must outlive this.
  BoundTables(ClassCosts& costs, const std::vector<ResourceLimit>& limits);

  StageUses& uses() { return uses_; }
  const StageSync& sync(int replicas);
  const EgressBound& egress();
  // No pipeline that holds all layers within `capacity` (by limit, for one replica) has a shorter bottleneck;
  // infinite if none has one of at most `most_s`. Below the exact value by up to kFloorStep, and by more if
  // memory is the constraint.
  double bottleneck_floor_s(const std::vector<double>& capacity, double most_s);

  static constexpr double kFloorStep = 0.008;

 private:
  // Minimum needs of stages whose bottlenecks are steps of a geometric grid that does not depend on D.
  const std::vector<double>& need_at(int step);

  ClassCosts& costs_;
  const std::vector<ResourceLimit>& limits_;
  std::unique_ptr<EgressBound> egress_;  // created on first use
  StageUses uses_;
  const StageSync no_sync_;                         // of one replica: nothing to reduce
  std::map<int, std::unique_ptr<StageSync>> sync_;  // by replicas
  SuffixResourceBound suffix_;
  std::map<int, std::vector<double>> need_;  // by step, then limit
  double shortest_s_ = 0;                    // below every bottleneck; step 0 of the grid
};

}  // namespace sailor
