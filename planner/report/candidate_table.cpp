#include "planner/report/candidate_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/plan/plan_json.h"
#include "planner/report/plan_text.h"
#include "planner/report/prediction_json.h"

namespace sailor {
namespace {

using nlohmann::json;

std::string gib(int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 30));
}

std::string number_list(const std::vector<int>& numbers) {
  std::string text;
  for (int n : numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", n);
  return text;
}

}  // namespace

std::string candidate_table(const PlanningContext& context, const SearchResult& result) {
  std::string out =
      fmt::format("{:<2}{:<28} {:<24} {:>3} {:>4} {:>10} {:>9} {:>11} {:>9}\n", "", "GPUS",
                  "PIPELINES X (TP)", "MB", "#MB", "ITER (s)", "ITER/s", "USD/ITER", "PEAK GiB");
  bool first = true;
  double uncertainty = 0;
  for (const Candidate& candidate : result.candidates) {
    uncertainty = std::max(uncertainty, candidate.prediction.uncertainty);
    int64_t microbatches = 0;
    for (const PlanPipeline& pipeline : candidate.plan.pipelines) microbatches += pipeline.microbatches;
    out += fmt::format(
        "{:<2}{:<28} {:<24} {:>3} {:>4} {:>10} {:>9.4g} {:>11.4g} {:>9}\n", first ? "*" : "",
        cut_to(gpus_by_type(candidate.plan), 28), cut_to(layout(candidate.plan), 24),
        candidate.plan.microbatch, microbatches,
        estimate_mark(candidate.prediction) + fmt::format("{:.4g}", candidate.prediction.iteration_s),
        candidate.prediction.iterations_per_s(), candidate.prediction.usd_per_iteration(),
        gib(candidate.prediction.peak_memory_bytes()));
    first = false;
  }
  out += estimate_note(uncertainty);
  if (result.candidates.empty()) out += fmt::format("no plan: {}\n", result.reason);
  out += fmt::format("objective {} | {} configurations, {} plans predicted, search {}\n",
                     to_string(context.job.objective), result.stats.configurations, result.stats.plans_scored,
                     result.stats.complete ? "complete" : "stopped before its end");
  if (result.bound_iteration_s && !result.candidates.empty())
    out += fmt::format(
        "no plan of this space is faster than {:.4g} s or cheaper than {:.4g} USD per iteration\n",
        *result.bound_iteration_s, result.bound_usd_per_iteration.value_or(0));
  if (!result.rejected.empty()) {
    out += "left out:";
    const char* separator = " ";
    for (const auto& [reason, count] : result.rejected) {
      out += fmt::format("{}{} x {}", separator, count, reason);
      separator = ", ";
    }
    out += "\n";
  }
  return out;
}

std::string stage_table(const Plan& plan, const Prediction& prediction) {
  std::string out = fmt::format(
      "{:<5} {:<5} {:>4} {:<9} {:<14} {:>3} {:<16} {:<9} {:>9} {:>9} {:>6} {:>10}\n", "PIPE", "STAGE", "#MB",
      "LAYERS", "GPU TYPE", "TP", "NODE", "GPUS", "FWD (s)", "BWD (s)", "BUSY", "MEM GiB");
  size_t at = 0;
  for (size_t j = 0; j < plan.pipelines.size(); ++j)
    for (size_t i = 0; i < plan.pipelines[j].stages.size(); ++i, ++at) {
      const PlanStage& stage = plan.pipelines[j].stages[i];
      const StagePrediction& p = prediction.stages.at(at);
      out += fmt::format(
          "{:<5} {:<5} {:>4} {:<9} {:<14} {:>3} {:<16} {:<9} {:>9.4g} {:>9.4g} {:>5.0f}% {:>5}/{}\n", j, i,
          plan.pipelines[j].microbatches, fmt::format("{}-{}", stage.first_layer, stage.end_layer - 1),
          cut_to((p.estimated ? "~" : "") + stage.gpu_type, 14), stage.tp,
          cut_to(stage.node.empty() ? "-" : stage.node, 16),
          cut_to(stage.gpus.empty() ? "-" : number_list(stage.gpus), 9), p.forward_s, p.backward_s,
          100 * p.busy_fraction, gib(p.memory.total()), gib(p.capacity_bytes));
    }
  out += fmt::format(
      "iteration {:.4g} s = pipeline {:.4g} + gradient sync {:.4g} + update {:.4g} + overhead {:.4g}; "
      "{:.4g} USD = compute {:.4g} + transfer {:.4g}\n",
      prediction.iteration_s, prediction.pipeline_s, prediction.sync_s, prediction.update_s,
      prediction.overhead_s, prediction.usd_per_iteration(), prediction.compute_usd, prediction.transfer_usd);
  out += estimate_note(prediction.uncertainty);
  return out;
}

std::string result_json(const PlanningContext& context, const SearchResult& result) {
  json candidates = json::array();
  for (const Candidate& candidate : result.candidates)
    candidates.push_back({{"plan", json::parse(to_json(candidate.plan, -1))},
                          {"prediction", prediction_json(candidate.prediction)}});
  const json out = {{"sailor_plan_result", 1},
                    {"status", status_name(result.status)},
                    {"model", context.job.model.name},
                    {"objective", to_string(context.job.objective)},
                    {"bound_iteration_s", optional_json(result.bound_iteration_s)},
                    {"bound_usd_per_iteration", optional_json(result.bound_usd_per_iteration)},
                    {"complete", result.stats.complete},
                    {"configurations", result.stats.configurations},
                    {"plans_scored", result.stats.plans_scored},
                    {"rejected", result.rejected},
                    {"reason", result.reason},
                    {"candidates", std::move(candidates)}};
  return out.dump(2) + "\n";
}

}  // namespace sailor
