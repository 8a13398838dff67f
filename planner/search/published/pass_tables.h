// Tables that the searches of one pass share, by microbatch size: the possible placement classes of stages,
// the limits on their total use, and bounds. Filled on demand; references stay valid. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "planner/search/bounds/bound_tables.h"
#include "planner/search/costs/class_costs.h"

namespace sailor {

// The possible stages, from fast to complete. alike: all replicas of one type and TP degree; mixed: also of
// several types; exact: every way to assign a pipeline template is tried; pure: its part for one replica;
// previous: the part of `mixed` that previous plans used; zoned: `mixed`, and separately the part of a type
// and TP degree in one zone.
enum class Pass { alike, mixed, exact, pure, previous, zoned };

// Options of the replicas of the first few plans, in any zone: by option.
struct PreviousOptions {
  std::vector<bool> alone;  // all replicas of some stage used it
  std::vector<bool> mixed;  // some replicas of a stage used it
};
PreviousOptions previous_options(const Resources& resources, const std::vector<Plan>& plans);

struct PassTables {
  std::unique_ptr<ClassCosts> costs;
  std::vector<ResourceLimit> limits;
  std::unique_ptr<BoundTables> bounds;
};

class PassTablesOf {
 public:
  // `previous`: for Pass::previous. `charge_matters`: there is a budget, or cost is the objective.
  // `resources` must outlive this.
  PassTablesOf(const Resources& resources, const std::vector<Plan>& previous, bool charge_matters)
      : resources_(resources),
        previous_(previous_options(resources, previous)),
        charge_matters_(charge_matters) {}

  PassTables& get(const StageCosts& costs, Pass pass);

 private:
  std::vector<PlacementClass> classes_of(const StageCosts& costs, Pass pass) const;

  const Resources& resources_;
  const PreviousOptions previous_;
  const bool charge_matters_;
  std::map<std::pair<Pass, const StageCosts*>, PassTables> tables_;
};

}  // namespace sailor
