#include "planner/search/priced_money.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace sailor {

std::vector<ResourceLimit> priced_money(const Resources& resources, const std::vector<StageMode>& modes,
                                        size_t most) {
  using Supply = std::pair<std::string, std::string>;  // region, GPU type
  const auto supply_of = [&](int o) {
    return Supply{resources.options[o].region, resources.options[o].gpu_type};
  };
  std::map<std::pair<Supply, double>, int> ties;  // stages that are indifferent, by supply and y
  for (const StageMode& mode : modes)
    for (const StageMode::Group& cheap : mode.groups)
      for (const StageMode::Group& dear : mode.groups) {
        const double y =
            (resources.options[dear.option].usd_per_s - resources.options[cheap.option].usd_per_s) / cheap.tp;
        if (y > 0 && supply_of(cheap.option) != supply_of(dear.option)) ++ties[{supply_of(cheap.option), y}];
      }
  std::vector<std::pair<int, std::pair<Supply, double>>> ranked;
  for (const auto& [tie, stages] : ties) ranked.emplace_back(stages, tie);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<ResourceLimit> out;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i) {
    const auto& [supply, y] = ranked[i].second;
    ResourceLimit money;
    money.capacity = std::numeric_limits<double>::infinity();
    double gpus = 0;
    std::set<int> pools;
    for (size_t o = 0; o < resources.options.size(); ++o) {
      const Option& option = resources.options[o];
      const bool of_supply = supply_of(static_cast<int>(o)) == supply;
      money.weight.push_back(option.usd_per_s + (of_supply ? y * option.tp : 0));
      if (of_supply && pools.insert(option.pool).second) gpus += resources.free_gpus(option.pool);
    }
    money.credit_usd_per_s = y * gpus;
    out.push_back(std::move(money));
  }
  return out;
}

}  // namespace sailor
