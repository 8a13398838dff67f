// What the searches of one pass share, by microbatch size: which placement classes stages may have, the
// limits on what placement classes use together, and tables of bounds. Filled as it is asked; references stay
// valid. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "planner/search/bounds/bound_tables.h"
#include "planner/search/costs/class_costs.h"

namespace sailor {

// What stages may be, from quick to complete. alike: all replicas of one type and TP degree; mixed: or of
// several types; exact: every way to assign a pipeline template is tried; pure: its part for one replica;
// previous: what of `mixed` the previous plans had; zoned: `mixed`, and apart from it what of a type and TP
// degree is in one zone.
enum class Pass { alike, mixed, exact, pure, previous, zoned };

// Options that replicas of the first few of some plans run on, in any zone: by option.
struct PreviousOptions {
  std::vector<bool> alone;  // all replicas of some stage were alike
  std::vector<bool> mixed;  // beside others
};
PreviousOptions previous_options(const Resources& resources, const std::vector<Plan>& plans);

struct PassTables {
  std::unique_ptr<ClassCosts> costs;
  std::vector<ResourceLimit> limits;
  std::unique_ptr<BoundTables> bounds;
};

class PassTablesOf {
 public:
  // `previous`: for Pass::previous. `charge_matters`: is there a budget, or is cost the objective?
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
