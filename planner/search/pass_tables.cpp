#include "planner/search/pass_tables.h"

#include <algorithm>

#include "planner/search/priced_money.h"

namespace sailor {
namespace {
// Limits that a search of mixed stages is held against; more of them bound better and cost more. Of so many,
// the most binding are kept.
constexpr size_t kMostLimits = 48, kMostBinding = 24;
// Lagrangian prices of money (priced_money.h), and their place among the limits: the first ones bound best.
constexpr size_t kMostPrices = 4, kBeforePrices = 4;
}  // namespace

std::vector<StageMode> PassTablesOf::modes_of(const StageCosts& costs, Pass pass) const {
  if (pass == Pass::exact) return all_modes(costs, resources_);
  if (pass == Pass::pure) return pure_modes(costs, resources_);
  std::vector<StageMode> modes = spread_modes(costs, resources_);
  if (pass == Pass::mixed)
    for (StageMode& mode : mixed_modes(costs, resources_)) modes.push_back(std::move(mode));
  return modes;
}

PassTables& PassTablesOf::get(const StageCosts& costs, Pass pass) {
  PassTables& t = tables_[{pass, &costs}];
  if (t.costs) return t;
  std::vector<StageMode> modes = modes_of(costs, pass);
  const bool zones_alone = pass == Pass::exact || pass == Pass::pure;
  std::vector<ResourceLimit> limits = resource_limits(costs, resources_, modes, zones_alone, kMostLimits);
  t.costs = std::make_unique<ModeCosts>(costs, resources_, std::move(modes));
  t.limits = most_binding_first(*t.costs, std::move(limits));
  if (!zones_alone && t.limits.size() > kMostBinding) t.limits.resize(kMostBinding);
  if (cost_matters_) {
    std::vector<ResourceLimit> money = priced_money(resources_, t.costs->modes(), kMostPrices);
    t.limits.insert(t.limits.begin() + std::min(kBeforePrices, t.limits.size()), money.begin(), money.end());
  }
  t.bounds = std::make_unique<BoundTables>(*t.costs, t.limits);
  return t;
}

}  // namespace sailor
