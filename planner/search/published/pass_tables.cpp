#include "planner/search/published/pass_tables.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "planner/search/costs/resource_limits.h"

namespace sailor {
namespace {
// Limits that a search of mixed stages is checked against; more of them bound better and cost more. Of so
// many, the most binding are kept.
constexpr size_t kMostLimits = 48, kMostBinding = 24;
// Previous plans whose options the previous pass has: more have too many for a quick search.
constexpr size_t kMostPreviousPlans = 4;
// Lagrangian prices of money (money_prices.h), and their place among the limits: the first ones bound best.
constexpr size_t kMostPrices = 4, kBeforePrices = 4;

// Beside stages over the zones of a region, those in one of the zones.
void add_single_zones(std::vector<PlacementClass>& classes) {
  std::vector<PlacementClass> added;
  for (const PlacementClass& placement : classes) {
    if (placement.kind != PlacementClass::Kind::spread) continue;
    for (int o : placement.groups.front().options) {
      added.push_back({PlacementClass::Kind::pure, {{o, placement.least, {o}}}, placement.least});
      added.back().refines = true;
    }
  }
  std::move(added.begin(), added.end(), std::back_inserter(classes));
}
}  // namespace

PreviousOptions previous_options(const Resources& resources, const std::vector<Plan>& plans) {
  PreviousOptions out{std::vector<bool>(resources.options.size()),
                      std::vector<bool>(resources.options.size())};
  using Kind = std::pair<std::string, ReplicaShape>;  // GPU type
  const auto mark = [&](const std::set<Kind>& kinds) {
    std::vector<bool>& options = kinds.size() > 1 ? out.mixed : out.alone;
    for (size_t o = 0; o < resources.options.size(); ++o) {
      const Option& option = resources.options[o];
      if (kinds.contains({option.gpu_type, option.shape})) options[o] = true;
    }
  };
  for (size_t p = 0; p < std::min(plans.size(), kMostPreviousPlans); ++p) {
    const Plan& plan = plans[p];
    std::map<std::pair<int, int>, std::set<Kind>> stages;  // by layers
    for (const PlanPipeline& pipeline : plan.pipelines)
      for (const PlanStage& stage : pipeline.stages)
        stages[{stage.first_layer, stage.end_layer}].insert({stage.gpu_type, stage.shape});
    for (const auto& [layers, kinds] : stages) mark(kinds);
  }
  return out;
}

std::vector<PlacementClass> PassTablesOf::classes_of(const StageCosts& costs, Pass pass) const {
  if (pass == Pass::exact) return all_classes(costs, resources_);
  if (pass == Pass::pure) return pure_classes(costs, resources_);
  std::vector<PlacementClass> classes = spread_classes(costs, resources_);
  const auto unknown = [](const std::vector<bool>& known) {
    return [&](const PlacementClass& placement) { return !known[placement.slowest()]; };
  };
  if (pass == Pass::previous) std::erase_if(classes, unknown(previous_.alone));
  if (pass == Pass::alike) return classes;
  std::vector<PlacementClass> mixed = mixed_classes(costs, resources_);
  if (pass == Pass::previous) std::erase_if(mixed, unknown(previous_.mixed));
  std::move(mixed.begin(), mixed.end(), std::back_inserter(classes));
  if (pass == Pass::zoned) add_single_zones(classes);
  return classes;
}

PassTables& PassTablesOf::get(const StageCosts& costs, Pass pass) {
  PassTables& t = tables_[{pass, &costs}];
  if (t.costs) return t;
  std::vector<PlacementClass> classes = classes_of(costs, pass);
  const bool zones_alone = pass == Pass::exact || pass == Pass::pure;
  std::vector<ResourceLimit> limits = resource_limits(costs, resources_, classes, zones_alone, kMostLimits);
  t.costs = std::make_unique<ClassCosts>(costs, resources_, std::move(classes));
  t.limits = most_binding_first(*t.costs, std::move(limits));
  if (!zones_alone && t.limits.size() > kMostBinding) t.limits.resize(kMostBinding);
  if (charge_matters_) {
    std::vector<ResourceLimit> money = money_prices(resources_, t.costs->classes(), kMostPrices);
    t.limits.insert(t.limits.begin() + std::min(kBeforePrices, t.limits.size()), money.begin(), money.end());
  }
  t.bounds = std::make_unique<BoundTables>(*t.costs, t.limits);
  return t;
}

}  // namespace sailor
