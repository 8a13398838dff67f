#include "planner/report/pareto_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/plan/plan_json.h"
#include "planner/report/plan_text.h"
#include "planner/report/prediction_json.h"

namespace sailor {
namespace {

using nlohmann::json;

}  // namespace

std::string pareto_table(const PlanningContext& context, const ParetoFront& front) {
  const double tokens = context.job.tokens_per_iteration();
  const ExpenseKind& kind = kind_of(front.expense);
  std::string out = fmt::format("{:<32} {:>5} {:>4} {:>4} {:>10} {:>10} {:>10} {:>11} {:>7}\n", "GPUS", "P",
                                "D", "MB", "ITER (s)", "TOKENS/s", fmt::format("{}/ITER", kind.column),
                                fmt::format("{}/1M TOK", kind.column), "GAP");
  double uncertainty = 0;
  for (const ParetoPoint& point : front.points) {
    const Plan& plan = point.candidate.plan;
    const Prediction& prediction = point.candidate.prediction;
    uncertainty = std::max(uncertainty, prediction.uncertainty);
    const std::optional<double> gap = point.gap();
    out += fmt::format(
        "{:<32} {:>5} {:>4} {:>4} {:>10} {:>10.4g} {:>10.4g} {:>11.4g} {:>7}\n",
        cut_to(gpus_by_type(plan), 32), num_stages_text(plan), plan.pipelines.size(), microbatch_text(plan),
        estimate_mark(prediction) + fmt::format("{:.4g}", prediction.iteration_s),
        tokens * prediction.iterations_per_s(), prediction.total(front.expense),
        1e6 * prediction.total(front.expense) / tokens, gap ? fmt::format("{:.1f}%", 100 * *gap) : "-");
  }
  out += estimate_note(uncertainty);
  out += fmt::format(
      "{} plans, none both slower and {} than another; {} searches, {}\n"
      "no plan is better than one of these by more than its GAP in both time and {}\n",
      front.points.size(), kind.more, front.searches, front.complete ? "complete" : "some stopped early",
      kind.name);
  if (front.bound_iteration_s && front.bound)
    out += fmt::format(
        "no plan in the search space is faster than {:.4g} s or {} than {:.4g} {} per iteration\n",
        *front.bound_iteration_s, kind.less, *front.bound, kind.unit);
  return out;
}

std::string pareto_json(const PlanningContext& context, const ParetoFront& front) {
  const double tokens = context.job.tokens_per_iteration();
  const ExpenseKind& kind = kind_of(front.expense);
  json points = json::array();
  for (const ParetoPoint& point : front.points) {
    const Prediction& prediction = point.candidate.prediction;
    points.push_back({{"plan", json::parse(to_json(point.candidate.plan, -1))},
                      {"prediction", prediction_json(prediction)},
                      {"tokens_per_s", tokens * prediction.iterations_per_s()},
                      {kind.per_million_tokens_key, 1e6 * prediction.total(front.expense) / tokens},
                      {"bound_iteration_s", optional_json(point.bound_iteration_s)},
                      {bound_key(front.expense), optional_json(point.bound)},
                      {"gap", optional_json(point.gap())}});
  }
  const json out = {{"sailor_pareto", 1},
                    {"status", status_name(front.status)},
                    {"model", context.job.model.name},
                    {"bound_iteration_s", optional_json(front.bound_iteration_s)},
                    {bound_key(front.expense), optional_json(front.bound)},
                    {"complete", front.complete},
                    {"searches", front.searches},
                    {"reason", front.reason},
                    {"points", std::move(points)}};
  return out.dump(2) + "\n";
}

}  // namespace sailor
