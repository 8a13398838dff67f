#include "tests/bench/gains.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "planner/search/search.h"

namespace sailor::bench {
namespace {

constexpr double kSame = 1e-9;  // relative

struct Found {
  double value = 0;  // of the objective; 0 = no plan
  bool complete = false;
  std::string plan;
};

Found find(const Scenario& scenario, const Inputs& inputs, const GainOptions& options, SearchSpace space,
           const PlanFeatures& allow) {
  PlanOptions plan_options;
  plan_options.space = space;
  plan_options.allow = allow;
  plan_options.top_k = 1;
  plan_options.time_limit_s = options.time_limit_s;
  plan_options.explain = false;
  const SearchResult result = search(inputs.context(), plan_options);
  Found found;
  found.complete = result.stats.complete;
  if (result.candidates.empty()) return found;
  const Candidate& best = result.candidates.front();
  found.value =
      scenario.objective == Expense::cost ? best.prediction.usd_per_iteration() : best.prediction.iteration_s;
  found.plan = summary(best.plan);
  if (best.plan.zero != Zero::none) found.plan += ", " + short_name(best.plan.zero);
  int recomputing = 0;
  for (const PlanPipeline& pipeline : best.plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) recomputing += stage.recompute != Recompute::none;
  if (recomputing > 0) found.plan += fmt::format(", {} stages recompute", recomputing);
  return found;
}

std::string number(double value) {
  return value > 0 ? fmt::format("{:.5f}", value) : "none";
}

// Throughput gained, or cost saved, in per cent; a plan where there was none is `new`.
std::string gain(const Found& before, const Found& after) {
  if (after.value == 0) return before.value == 0 ? "" : "lost";
  return before.value == 0 ? "new" : fmt::format("{:.2f}", 100 * (before.value / after.value - 1));
}

bool worse(const Found& wide, const Found& narrow) {
  return narrow.value > 0 && (wide.value == 0 || wide.value > narrow.value * (1 + kSame));
}

}  // namespace

std::string gains_header() {
  std::string line = "scenario,memory,paper,full,gain_pct";
  for (const char* how : {"only", "without"})
    for (PlanFeature feature : all_plan_features()) line += fmt::format(",{}_{}", how, to_string(feature));
  return line + ",complete,plan";
}

Gains gains_of(const Scenario& scenario, Inputs inputs, const GainOptions& options) {
  for (auto& [name, type] : inputs.catalog.gpu_types)
    type.memory_bytes = static_cast<int64_t>(static_cast<double>(type.memory_bytes) * options.memory);
  const auto run = [&](SearchSpace space, const PlanFeatures& allow) {
    return find(scenario, inputs, options, space, allow);
  };
  const Found paper = run(SearchSpace::paper, {});
  const Found full = run(SearchSpace::full, all_plan_features());
  Gains out;
  out.complete = paper.complete && full.complete;
  out.monotone = !worse(full, paper);
  out.csv = fmt::format("{},{},{},{},{}", scenario.name, options.memory, number(paper.value),
                        number(full.value), gain(paper, full));
  for (PlanFeature feature : all_plan_features()) {
    const Found only = run(SearchSpace::full, {feature});
    out.complete = out.complete && only.complete;
    out.monotone = out.monotone && !worse(only, paper) && !worse(full, only);
    out.csv += "," + gain(paper, only);
  }
  for (PlanFeature feature : all_plan_features()) {
    PlanFeatures rest = all_plan_features();
    rest.erase(feature);
    const Found without = run(SearchSpace::full, rest);
    out.complete = out.complete && without.complete;
    out.monotone = out.monotone && !worse(full, without);
    out.csv += "," + gain(paper, without);
  }
  out.csv += fmt::format(",{:d},\"{}\"", out.complete, full.plan);
  return out;
}

bool is_mixed(const Scenario& scenario) {
  std::set<std::string> types;
  for (const PoolSize& pool : scenario.pools) types.insert(pool.gpu_type);
  return types.size() > 1;
}

}  // namespace sailor::bench
