#include "tests/bench/baselines.h"

#include <fmt/format.h>

#include <filesystem>

namespace sailor::bench {

std::vector<Baseline> load_baselines(const std::string& path) {
  std::vector<Baseline> baselines;
  if (!std::filesystem::exists(path)) return baselines;
  for (const CsvRow& row : read_csv(path)) {
    const auto iter_per_s = row.number("iter_per_s"), usd_per_iter = row.number("usd_per_iter");
    if (!iter_per_s || !usd_per_iter) continue;
    baselines.push_back(
        {row.text("planner"), row.text("scenario"), row.text("note"), *iter_per_s, *usd_per_iter});
  }
  return baselines;
}

Standing stand(const Scenario& scenario, const std::vector<Baseline>& baselines, double iter_per_s,
               double usd_per_iter) {
  Standing standing;
  const bool cost = scenario.objective == Objective::cost;
  for (const Baseline& baseline : baselines) {
    if (baseline.scenario != scenario.name) continue;
    // A plan outside the limits is no answer to the same question.
    if (scenario.max_usd && baseline.usd_per_iter > *scenario.max_usd * (1 + kTolerance)) continue;
    if (scenario.min_iter_per_s && baseline.iter_per_s < *scenario.min_iter_per_s * (1 - kTolerance))
      continue;
    const bool reached = iter_per_s > 0 && (cost ? usd_per_iter <= baseline.usd_per_iter * (1 + kTolerance)
                                                 : iter_per_s >= baseline.iter_per_s * (1 - kTolerance));
    const std::string line = fmt::format("{} finds {:.5f} iterations/s at {:.4f} USD", baseline.planner,
                                         baseline.iter_per_s, baseline.usd_per_iter);
    if (!baseline.note.empty()) {
      ++standing.noted;
      if (!reached) standing.noted_better.push_back(line + " (" + baseline.note + ")");
      continue;
    }
    ++standing.compared;
    if (reached)
      ++standing.beaten;
    else
      standing.better.push_back(line);
  }
  return standing;
}

}  // namespace sailor::bench
