#include "planner/report/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "planner/plan/feature_text.h"
#include "planner/report/plan_text.h"
#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr size_t kWidestNodes = 16, kWidestGpus = 9;

std::string gib(int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 30));
}

// Stages [first, end) of pipelines that are alike.
struct Run {
  const Plan& plan;
  const Prediction& prediction;
  const std::vector<int>& pipelines;
  size_t base = 0;  // of the first of them in the prediction's stages
  size_t first = 0, end = 0;

  const PlanStage& stage(size_t i) const {
    return plan.pipelines[static_cast<size_t>(pipelines[0])].stages[i];
  }
  const StagePrediction& predicted(size_t i) const { return prediction.stages.at(base + i); }

  // Does stage i differ from the first one in its place only?
  bool is_like_first(size_t i) const {
    const PlanStage &a = stage(first), &b = stage(i);
    const StagePrediction &p = predicted(first), &q = predicted(i);
    const auto time = [](double s) { return fmt::format("{:.4g}", s); };
    return a.gpu_type == b.gpu_type && a.zone == b.zone && a.shape == b.shape && a.recompute == b.recompute &&
           a.end_layer - a.first_layer == b.end_layer - b.first_layer && p.estimated == q.estimated &&
           time(p.forward_s) == time(q.forward_s) && time(p.backward_s) == time(q.backward_s);
  }
};

std::string layers_text(const Run& run) {
  const PlanStage& stage = run.stage(run.first);
  return run.end - run.first > 1 ? fmt::format("{} each", stage.end_layer - stage.first_layer)
                                 : fmt::format("{}-{}", stage.first_layer, stage.end_layer - 1);
}

// Every node once, in the order of stages; their number where there are too many.
std::string nodes_text(const Run& run) {
  std::vector<std::string> nodes;
  for (const int j : run.pipelines)
    for (size_t i = run.first; i < run.end; ++i) {
      const std::string& node = run.plan.pipelines[static_cast<size_t>(j)].stages[i].node;
      if (!node.empty() && std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  if (nodes.empty()) return "-";
  std::string text;
  for (const std::string& node : nodes) text += (text.empty() ? "" : ",") + node;
  if (nodes.size() == 1) return cut_to(text, kWidestNodes);
  return text.size() > kWidestNodes ? fmt::format("{} nodes", nodes.size()) : text;
}

// Their indices where the row is one TP group, or all of it is on one node; else how many there are.
std::string gpus_text(const Run& run) {
  std::set<std::string> nodes;
  std::set<std::pair<std::string, int>> gpus;
  for (const int j : run.pipelines)
    for (size_t i = run.first; i < run.end; ++i) {
      const PlanStage& stage = run.plan.pipelines[static_cast<size_t>(j)].stages[i];
      if (stage.gpus.empty()) return "-";
      nodes.insert(stage.node);
      for (const int gpu : stage.gpus) gpus.emplace(stage.node, gpu);
    }
  std::vector<int> indices;
  for (const auto& [node, gpu] : gpus) indices.push_back(gpu);
  const std::string text = nodes.size() == 1 ? number_ranges(indices) : "";
  return text.empty() || text.size() > kWidestGpus ? fmt::format("{} GPUs", gpus.size()) : text;
}

// "12", or "12x4" of 4 sequences where other pipelines have other sizes.
std::string microbatches_text(const Plan& plan, const PlanPipeline& pipeline) {
  if (!has_unlike_microbatches(plan)) return fmt::format("{}", pipeline.microbatches);
  return fmt::format("{}x{}", pipeline.microbatches, microbatch_of(plan, pipeline));
}

std::string row(const Run& run, bool with_recompute) {
  const PlanStage& stage = run.stage(run.first);
  const StagePrediction& p = run.predicted(run.first);
  double busy = 0;
  int64_t memory = 0;
  for (size_t i = run.first; i < run.end; ++i) {
    busy = std::max(busy, run.predicted(i).busy_fraction);
    memory = std::max(memory, run.predicted(i).memory.total());
  }
  std::vector<int> stages;
  for (size_t i = run.first; i < run.end; ++i) stages.push_back(static_cast<int>(i));
  return fmt::format(
      "{:<5} {:<5} {:>4} {:<9} {:<14} {:>3} {:<16} {:<9} {:>9.4g} {:>9.4g} {:>5.0f}% {:>5}/{}{}\n",
      cut_to(number_ranges(run.pipelines), 5), number_ranges(stages),
      microbatches_text(run.plan, run.plan.pipelines[static_cast<size_t>(run.pipelines[0])]),
      layers_text(run), cut_to((p.estimated ? "~" : "") + stage.gpu_type, 14), to_string(stage.shape),
      nodes_text(run), gpus_text(run), p.forward_s, p.backward_s, 100 * busy, gib(memory),
      gib(p.capacity_bytes),
      with_recompute ? (stage.recompute == Recompute::none ? "  -" : "  " + to_string(stage.recompute)) : "");
}

// "offloaded: optimizer states in stages 0-1 of pipelines 0-3, up to 23.40 GiB in the memory of a node"
std::string offload_text(const Plan& plan, const Prediction& prediction) {
  std::map<std::string, int64_t> on_nodes;
  int64_t most = 0;
  std::map<std::vector<int>, std::vector<int>> pipelines;  // by their stages that offload
  size_t at = 0;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const PlanPipeline& pipeline = plan.pipelines[p];
    const auto groups = static_cast<size_t>(num_groups(plan, pipeline));
    std::vector<int> stages;
    for (size_t s = 0; s < groups; ++s) {
      const PlanStage& stage = pipeline.stages[s];
      if (!offloads(stage)) continue;
      stages.push_back(static_cast<int>(s));
      const int64_t rank = prediction.stages.at(at + s).memory.offloaded_bytes;
      most = std::max(most, stage.node.empty() ? 0 : on_nodes[stage.node] += stage.shape.gpus() * rank);
    }
    if (!stages.empty()) pipelines[stages].push_back(static_cast<int>(p));
    at += pipeline.stages.size();
  }
  std::string of;
  for (const auto& [stages, with] : pipelines)
    of +=
        fmt::format("{}stage{} {} of pipeline{} {}", of.empty() ? "" : " and ", stages.size() == 1 ? "" : "s",
                    number_ranges(stages), with.size() == 1 ? "" : "s", number_ranges(with));
  return fmt::format("offloaded: {} in {}{}\n", offloaded_text(plan), of,
                     most > 0 ? fmt::format(", up to {} GiB in the memory of a node", gib(most)) : "");
}

}  // namespace

std::string stage_table(const Plan& plan, const Prediction& prediction) {
  const bool with_recompute = !recomputing_stages(plan).empty();
  std::string out =
      fmt::format("{:<5} {:<5} {:>4} {:<9} {:<14} {:>3} {:<16} {:<9} {:>9} {:>9} {:>6} {:>10}{}\n", "PIPE",
                  "STAGE", "#MB", "LAYERS", "GPU TYPE", "TP", "NODE", "GPUS", "FWD (s)", "BWD (s)", "BUSY",
                  "MEM GiB", with_recompute ? "  RECOMP" : "");
  const std::vector<size_t> base = pipeline_bases(plan);
  for (const std::vector<int>& pipelines : alike_pipelines(plan, prediction, {})) {
    const auto first = static_cast<size_t>(pipelines[0]);
    const size_t stages = plan.pipelines[first].stages.size();
    for (size_t i = 0; i < stages;) {
      Run run{plan, prediction, pipelines, base[first], i, i + 1};
      while (run.end < stages && run.is_like_first(run.end)) ++run.end;
      out += row(run, with_recompute);
      i = run.end;
    }
  }
  if (plan.interleave > 1 && num_stages_text(plan).find('-') == std::string::npos)
    out += fmt::format("interleaved: {} chunks on each GPU, stage i + {} is on the GPUs of stage i\n",
                       plan.interleave, num_stages_text(plan));
  else if (plan.interleave > 1)
    out += fmt::format("interleaved: {} chunks on each GPU\n", plan.interleave);
  if (const int delay = most_weight_delay(plan); delay != kWholeBackward)
    out += fmt::format(
        "split backward: a stage computes gradients of weights up to {} microbatch{} after those that the "
        "stage before waits for\n",
        delay, delay == 1 ? "" : "es");
  if (offloads(plan)) out += offload_text(plan, prediction);
  out += fmt::format(
      "iteration {:.4g} s = pipeline {:.4g} + gradient sync {:.4g} + update {:.4g} + overhead {:.4g}",
      prediction.iteration_s, prediction.pipeline_s, prediction.sync_s, prediction.update_s,
      prediction.overhead_s);
  for (const Expense expense : kExpenses) {
    const Spent& spent = prediction.spent[expense];
    if (!is_told(expense, spent.total() > 0)) continue;
    const ExpenseKind& kind = kind_of(expense);
    out += fmt::format("; {:.4g} {}", spent.total(), kind.unit);
    if (kind.traffic_key != nullptr)
      out += fmt::format(" = compute {:.4g} + transfer {:.4g}", spent.gpus, spent.traffic);
  }
  out += "\n";
  out += estimate_note(prediction);
  return out;
}

}  // namespace sailor
