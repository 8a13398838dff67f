#include "tests/bench/baselines.h"

#include <fmt/format.h>

#include <filesystem>

namespace sailor::bench {

std::vector<Baseline> load_baselines(const std::string& path) {
  std::vector<Baseline> baselines;
  if (!std::filesystem::exists(path)) return baselines;
  for (const CsvRow& row : read_csv(path)) {
    const auto iter_per_s = row.number("iter_per_s"), usd_per_iter = row.number("usd_per_iter");
    const bool found = iter_per_s && usd_per_iter;
    baselines.push_back({row.text("planner"), row.text("scenario"), row.text("note"), found ? *iter_per_s : 0,
                         found ? *usd_per_iter : 0, row.text("gpus"), row.number("search_cpu_s"),
                         row.number("plans_out_of_memory_before_the_first_valid")});
  }
  return baselines;
}

bool reaches(const Scenario& scenario, const Baseline& baseline, double iter_per_s, double usd_per_iter) {
  if (iter_per_s <= 0) return false;
  return scenario.objective == Expense::cost ? usd_per_iter <= baseline.usd_per_iter * (1 + kTolerance)
                                             : iter_per_s >= baseline.iter_per_s * (1 - kTolerance);
}

Against against(const Scenario& scenario, const Baseline& baseline, double iter_per_s, double usd_per_iter) {
  if (baseline.iter_per_s <= 0) return Against::no_plan;
  if (scenario.max_usd && baseline.usd_per_iter > *scenario.max_usd * (1 + kTolerance))
    return Against::outside_limits;
  if (scenario.min_iter_per_s && baseline.iter_per_s < *scenario.min_iter_per_s * (1 - kTolerance))
    return Against::outside_limits;
  if (!baseline.note.empty()) return Against::noted;
  return reaches(scenario, baseline, iter_per_s, usd_per_iter) ? Against::reached : Against::missed;
}

Standing stand(const Scenario& scenario, const std::vector<Baseline>& baselines, double iter_per_s,
               double usd_per_iter) {
  Standing standing;
  for (const Baseline& baseline : baselines) {
    if (baseline.scenario != scenario.name) continue;
    const Against how = against(scenario, baseline, iter_per_s, usd_per_iter);
    if (how == Against::no_plan || how == Against::outside_limits) continue;
    const std::string line = fmt::format("{} finds {:.5f} iterations/s at {:.4f} USD", baseline.planner,
                                         baseline.iter_per_s, baseline.usd_per_iter);
    if (how == Against::noted) {
      ++standing.noted;
      if (!reaches(scenario, baseline, iter_per_s, usd_per_iter))
        standing.noted_better.push_back(line + " (" + baseline.note + ")");
      continue;
    }
    ++standing.compared;
    if (how == Against::reached)
      ++standing.beaten;
    else
      standing.better.push_back(line);
  }
  return standing;
}

}  // namespace sailor::bench
