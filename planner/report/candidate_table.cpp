#include "planner/report/candidate_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

using nlohmann::json;

std::string gib(int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 30));
}

std::string cut_to(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 2) + "..";
  return text;
}

std::string gpus_by_type(const Plan& plan) {
  std::map<std::string, int> gpus;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) gpus[stage.gpu_type] += stage.tp;
  std::string text;
  for (const auto& [type, count] : gpus)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", count, type);
  return text;
}

// The TP degrees of a pipeline's stages: "4,1".
std::string degrees(const PlanPipeline& pipeline) {
  std::string text;
  for (const PlanStage& stage : pipeline.stages)
    text += fmt::format("{}{}", text.empty() ? "" : ",", stage.tp);
  return text;
}

// Kinds of pipelines, each with how often it occurs: "2x(4,1) + 1x(2)".
std::string layout(const Plan& plan) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    const std::string kind = degrees(pipeline);
    const auto it = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
    if (it == kinds.end())
      kinds.emplace_back(kind, 1);
    else
      ++it->second;
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{}x({})", text.empty() ? "" : " + ", count, kind);
  return text;
}

// What stands before a number that rests on estimated layer times, and the line that explains it.
std::string estimate_mark(const Prediction& prediction) {
  return prediction.uncertainty > 0 ? "~" : "";
}
std::string estimate_note(double uncertainty) {
  return uncertainty > 0
             ? fmt::format("~ estimated: layer times were not measured (+-{:.0f} %)\n", 100 * uncertainty)
             : "";
}

std::string number_list(const std::vector<int>& numbers) {
  std::string text;
  for (int n : numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", n);
  return text;
}

const char* status_name(SearchStatus status) {
  switch (status) {
    case SearchStatus::found:
      return "found";
    case SearchStatus::infeasible:
      return "infeasible";
    case SearchStatus::time_limit:
      return "time_limit";
  }
  return "";
}

json memory_json(const MemoryBreakdown& m) {
  return {{"weights_bytes", m.weights_bytes},
          {"gradients_bytes", m.gradients_bytes},
          {"optimizer_bytes", m.optimizer_bytes},
          {"master_bytes", m.master_bytes},
          {"activations_bytes", m.activations_bytes},
          {"workspace_bytes", m.workspace_bytes},
          {"communication_bytes", m.communication_bytes},
          {"base_bytes", m.base_bytes},
          {"fragmentation_bytes", m.fragmentation_bytes},
          {"total_bytes", m.total()}};
}

json prediction_json(const Prediction& p) {
  json stages = json::array();
  for (const StagePrediction& s : p.stages)
    stages.push_back({{"pipeline", s.pipeline},
                      {"stage", s.stage},
                      {"forward_s", s.forward_s},
                      {"backward_s", s.backward_s},
                      {"send_forward_s", s.send_forward_s},
                      {"send_backward_s", s.send_backward_s},
                      {"sync_s", s.sync_s},
                      {"update_s", s.update_s},
                      {"estimated", s.estimated},
                      {"in_flight", s.in_flight},
                      {"busy_fraction", s.busy_fraction},
                      {"memory", memory_json(s.memory)},
                      {"capacity_bytes", s.capacity_bytes}});
  return {{"iteration_s", p.iteration_s},
          {"iterations_per_s", p.iterations_per_s()},
          {"pipeline_s", p.pipeline_s},
          {"sync_s", p.sync_s},
          {"update_s", p.update_s},
          {"overhead_s", p.overhead_s},
          {"compute_usd", p.compute_usd},
          {"transfer_usd", p.transfer_usd},
          {"usd_per_iteration", p.usd_per_iteration()},
          {"peak_memory_bytes", p.peak_memory_bytes()},
          {"uncertainty", p.uncertainty},
          {"fits", p.fits},
          {"stages", std::move(stages)}};
}

json optional_json(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
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
