// What the searches of one pass share, by microbatch size: which modes stages may have, the limits on what
// modes use together, and tables of bounds. Filled as it is asked; references stay valid. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "planner/search/bound_tables.h"
#include "planner/search/mode_costs.h"

namespace sailor {

// What stages may be, from quick to complete. alike: all replicas of one type and TP degree; mixed: or of
// several types; exact: every way to realize a skeleton is tried; pure: its part for one replica; familiar:
// what of `mixed` the plans of before had; zoned: `mixed`, and what is all in one of a
// region's zones apart.
enum class Pass { alike, mixed, exact, pure, familiar, zoned };

// Options that replicas of the first few of some plans run on, in any zone: by option.
struct FamiliarOptions {
  std::vector<bool> alone;  // all replicas of some stage were alike
  std::vector<bool> mixed;  // beside others
};
FamiliarOptions familiar_options(const Resources& resources, const std::vector<Plan>& plans);

struct PassTables {
  std::unique_ptr<ModeCosts> costs;
  std::vector<ResourceLimit> limits;
  std::unique_ptr<BoundTables> bounds;
};

class PassTablesOf {
 public:
  // `previous`: for Pass::familiar. `cost_matters`: is there a budget, or is cost the objective? `resources`
  // must outlive this.
  PassTablesOf(const Resources& resources, const std::vector<Plan>& previous, bool cost_matters)
      : resources_(resources),
        familiar_(familiar_options(resources, previous)),
        cost_matters_(cost_matters) {}

  PassTables& get(const StageCosts& costs, Pass pass);

 private:
  std::vector<StageMode> modes_of(const StageCosts& costs, Pass pass) const;

  const Resources& resources_;
  const FamiliarOptions familiar_;
  const bool cost_matters_;
  std::map<std::pair<Pass, const StageCosts*>, PassTables> tables_;
};

}  // namespace sailor
