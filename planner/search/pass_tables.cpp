#include "planner/search/pass_tables.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <tuple>

#include "planner/search/priced_money.h"

namespace sailor {
namespace {
// Limits that a search of mixed stages is held against; more of them bound better and cost more. Of so many,
// the most binding are kept.
constexpr size_t kMostLimits = 48, kMostBinding = 24;
// Plans of before whose options are familiar: more have too many for a quick search.
constexpr size_t kMostFamiliar = 4;
// Lagrangian prices of money (priced_money.h), and their place among the limits: the first ones bound best.
constexpr size_t kMostPrices = 4, kBeforePrices = 4;
}  // namespace

FamiliarOptions familiar_options(const Resources& resources, const std::vector<Plan>& plans) {
  FamiliarOptions out{std::vector<bool>(resources.options.size()),
                      std::vector<bool>(resources.options.size())};
  using Kind = std::tuple<std::string, int, std::string>;  // GPU type, TP degree, recomputation
  const auto mark = [&](const std::set<Kind>& kinds) {
    std::vector<bool>& options = kinds.size() > 1 ? out.mixed : out.alone;
    for (size_t o = 0; o < resources.options.size(); ++o) {
      const Option& option = resources.options[o];
      if (kinds.contains({option.gpu_type, option.tp, to_string(option.recompute)})) options[o] = true;
    }
  };
  for (size_t p = 0; p < std::min(plans.size(), kMostFamiliar); ++p) {
    const Plan& plan = plans[p];
    std::map<std::pair<int, int>, std::set<Kind>> stages;  // by layers
    for (const PlanPipeline& pipeline : plan.pipelines)
      for (const PlanStage& stage : pipeline.stages)
        stages[{stage.first_layer, stage.end_layer}].insert({stage.gpu_type, stage.tp, stage.recompute});
    for (const auto& [layers, kinds] : stages) mark(kinds);
  }
  return out;
}

std::vector<StageMode> PassTablesOf::modes_of(const StageCosts& costs, Pass pass) const {
  if (pass == Pass::exact) return all_modes(costs, resources_);
  if (pass == Pass::pure) return pure_modes(costs, resources_);
  std::vector<StageMode> modes = spread_modes(costs, resources_);
  const auto unfamiliar = [](const std::vector<bool>& familiar) {
    return [&](const StageMode& mode) { return !familiar[mode.slowest()]; };
  };
  if (pass == Pass::familiar) std::erase_if(modes, unfamiliar(familiar_.alone));
  if (pass == Pass::alike) return modes;
  std::vector<StageMode> mixed = mixed_modes(costs, resources_);
  if (pass == Pass::familiar) std::erase_if(mixed, unfamiliar(familiar_.mixed));
  std::move(mixed.begin(), mixed.end(), std::back_inserter(modes));
  if (pass != Pass::zoned) return modes;
  const auto is_spread = [](const StageMode& mode) { return mode.kind == StageMode::Kind::spread; };
  const size_t n = modes.size();
  for (size_t m = 0; m < n; ++m)
    for (int o : is_spread(modes[m]) ? modes[m].groups.front().options : std::vector<int>()) {
      const int tp = modes[m].least_tp;
      modes.push_back({StageMode::Kind::pure, {{o, tp, {o}}}, tp});
      modes.back().refines = true;
    }
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
