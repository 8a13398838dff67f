#include "planner/plan/feature_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sailor {
namespace {

std::vector<int> recomputing(const PlanPipeline& pipeline) {
  std::vector<int> stages;
  for (size_t i = 0; i < pipeline.stages.size(); ++i)
    if (pipeline.stages[i].recompute.deepest() != Recompute::none) stages.push_back(static_cast<int>(i));
  return stages;
}

// Of any block.
Recompute deepest_recompute(const Plan& plan) {
  Recompute most = Recompute::none;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) most = std::max(most, stage.recompute.deepest());
  return most;
}

}  // namespace

std::string number_ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ",";
    text += end - i == 1 ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return text;
}

std::string recomputing_stages(const Plan& plan) {
  bool some = false, all = true, alike = true;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    const std::vector<int> stages = recomputing(pipeline);
    some = some || !stages.empty();
    all = all && stages.size() == pipeline.stages.size();
    alike = alike && stages == recomputing(plan.pipelines[0]);
  }
  if (!some) return "";
  if (all) return "all";
  return alike ? number_ranges(recomputing(plan.pipelines[0])) : "some";
}

int most_weight_delay(const Plan& plan) {
  int most = kWholeBackward;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) most = std::max(most, stage.weight_delay);
  return most;
}

std::string zero_text(const Plan& plan) {
  return short_name(plan.zero) + (plan.zero_group > 0 ? fmt::format(":{}", plan.zero_group) : "");
}

std::string feature_text(const Plan& plan) {
  const std::string stages = recomputing_stages(plan);
  const Recompute most = deepest_recompute(plan);
  std::string recompute = most == Recompute::none ? "" : "recompute";
  if (most != Recompute::none && most < Recompute::full) recompute += std::string("-") + to_string(most);
  if (!stages.empty() && stages != "all") recompute += ":" + stages;
  std::string text;
  for (const std::string& feature :
       {std::string(plan.precision ? to_string(*plan.precision) : ""), zero_text(plan), recompute,
        plan.interleave > 1 ? fmt::format("interleave:{}", plan.interleave) : std::string(),
        std::string(most_weight_delay(plan) != kWholeBackward ? "split-backward" : ""),
        std::string(plan.sequence_parallel && (has_tensor_parallelism(plan) || !has_context_parallelism(plan))
                        ? "sp"
                        : ""),
        std::string(has_context_parallelism(plan) ? "cp" : ""), std::string(offloads(plan) ? "offload" : "")})
    if (!feature.empty()) text += (text.empty() ? "" : " ") + feature;
  return text;
}

std::string offloaded_text(const Plan& plan) {
  const auto any = [&](const auto& of_stage) {
    return std::ranges::any_of(plan.pipelines, [&](const PlanPipeline& pipeline) {
      return std::ranges::any_of(pipeline.stages, of_stage);
    });
  };
  const bool states = any([](const PlanStage& stage) { return offloads_optimizer(stage); });
  const bool inputs = any([](const PlanStage& stage) { return stage.recompute.offloads(); });
  return std::string(states ? "optimizer states" : "") + (states && inputs ? " and " : "") +
         (inputs ? "inputs of blocks" : "");
}

}  // namespace sailor
