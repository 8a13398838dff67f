#include "tests/bench/replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace sailor::bench {
namespace {

constexpr double kSame = 1e-9;  // relative

struct Planned {
  std::vector<Plan> plans;  // best first
  double value = 0;         // of the objective; 0 = no plan
  double ms = 0;
};

Planned plan(const Inputs& inputs, CostModel model, double time_limit_s, int candidates,
             const std::vector<Plan>& previous) {
  PlanOptions plan_options;
  plan_options.cost_model = model;
  plan_options.space = model == CostModel::native ? SearchSpace::full : SearchSpace::paper;
  plan_options.top_k = candidates;
  plan_options.time_limit_s = plan_options.effort_limit_s = time_limit_s;
  plan_options.explain = false;
  plan_options.previous = previous;
  const auto started = std::chrono::steady_clock::now();
  const SearchResult result = search(inputs.context(), plan_options);
  Planned out;
  out.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  if (result.candidates.empty()) return out;
  const Candidate& best = result.candidates.front();
  for (const Candidate& candidate : result.candidates) out.plans.push_back(candidate.plan);
  out.value = inputs.job.objective == Expense::cost ? best.prediction.usd_per_iteration()
                                                    : best.prediction.iteration_s;
  return out;
}

// The cluster without some of its nodes, at least one, whichever the seed says.
Inputs without_nodes(const Inputs& inputs, const ReplanOptions& options) {
  Inputs out = inputs;
  auto& nodes = out.snapshot.nodes;
  std::mt19937_64 random(options.seed);
  const auto count =
      std::max<size_t>(1, static_cast<size_t>(options.part * static_cast<double>(nodes.size())));
  for (size_t i = 0; i < count && nodes.size() > 1; ++i)
    nodes.erase(nodes.begin() + static_cast<ptrdiff_t>(random() % nodes.size()));
  return out;
}

}  // namespace

std::string replan_header() {
  return "scenario,model,event,gpus,from_nothing_ms,again_ms,from_nothing,again,again_over_from_nothing,"
         "before_plan,from_nothing_plan,again_plan";
}

std::string Replan::csv(const Scenario& scenario, CostModel model) const {
  int gpus = 0;
  for (const PoolSize& pool : scenario.pools) gpus += pool.gpus;
  return fmt::format("{},{},{},{},{:.1f},{:.1f},{:.6f},{:.6f},{:.6f},\"{}\",\"{}\",\"{}\"", scenario.name,
                     to_string(model), event, gpus, from_nothing_ms, again_ms, from_nothing, again,
                     from_nothing > 0 ? again / from_nothing : 0, before_plan, from_nothing_plan, plan);
}

Replans replan(const Inputs& inputs, CostModel model, const ReplanOptions& options) {
  const Inputs fewer = without_nodes(inputs, options);
  const Planned all = plan(inputs, model, options.time_limit_s, options.candidates, {});
  const Planned few = plan(fewer, model, options.time_limit_s, options.candidates, {});
  Replans out;
  const auto add = [&](const char* event, const Inputs& now, const Planned& before, const Planned& nothing) {
    if (before.plans.empty()) return;
    const Planned again = plan(now, model, options.again_time_limit_s, 1, before.plans);
    out.slowest_ms = std::max(out.slowest_ms, again.ms);
    const bool worse = options.again_time_limit_s >= options.time_limit_s && nothing.value > 0 &&
                       (again.value == 0 || again.value > nothing.value * (1 + kSame));
    out.worse = out.worse || worse;
    const auto text = [](const Planned& planned) {
      return planned.plans.empty() ? "" : summary(planned.plans.front());
    };
    out.events.push_back(
        {event, nothing.ms, again.ms, nothing.value, again.value, text(before), text(nothing), text(again)});
  };
  add("loss", fewer, all, few);
  add("gain", inputs, few, all);
  return out;
}

}  // namespace sailor::bench
