#include "planner/report/timeline_pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace sailor {
namespace {

bool same_stage(const PlanStage& a, const PlanStage& b) {
  return std::tie(a.first_layer, a.end_layer, a.gpu_type, a.shape, a.recompute, a.weight_delay, a.offload) ==
         std::tie(b.first_layer, b.end_layer, b.gpu_type, b.shape, b.recompute, b.weight_delay, b.offload);
}

bool same_prediction(const StagePrediction& a, const StagePrediction& b) {
  return std::tie(a.forward_s, a.backward_s, a.send_forward_s, a.send_backward_s, a.sync_s, a.update_s,
                  a.in_flight, a.busy_fraction, a.capacity_bytes) ==
             std::tie(b.forward_s, b.backward_s, b.send_forward_s, b.send_backward_s, b.sync_s, b.update_s,
                      b.in_flight, b.busy_fraction, b.capacity_bytes) &&
         a.memory.total() == b.memory.total();
}

bool same_event(const TimelineEvent& a, const TimelineEvent& b) {
  return std::tie(a.kind, a.stage, a.microbatch, a.chunk, a.start_s, a.end_s) ==
         std::tie(b.kind, b.stage, b.microbatch, b.chunk, b.start_s, b.end_s);
}

}  // namespace

std::vector<std::vector<int>> alike_pipelines(const Plan& plan, const Prediction& prediction,
                                              const std::vector<Timeline>& timelines) {
  const std::vector<size_t> base = pipeline_bases(plan);
  const size_t entries = base.empty() ? 0 : base.back() + plan.pipelines.back().stages.size();
  const auto alike = [&](size_t a, size_t b) {
    const std::vector<PlanStage>& x = plan.pipelines[a].stages;
    const std::vector<PlanStage>& y = plan.pipelines[b].stages;
    if (plan.pipelines[a].microbatches != plan.pipelines[b].microbatches ||
        microbatch_of(plan, plan.pipelines[a]) != microbatch_of(plan, plan.pipelines[b]))
      return false;
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end(), same_stage)) return false;
    for (size_t i = 0; i < x.size() && entries <= prediction.stages.size(); ++i)
      if (!same_prediction(prediction.stages[base[a] + i], prediction.stages[base[b] + i])) return false;
    if (timelines.empty()) return true;
    const Timeline& s = timelines.at(a);
    const Timeline& t = timelines.at(b);
    return s.stage_end_s == t.stage_end_s &&
           std::equal(s.events.begin(), s.events.end(), t.events.begin(), t.events.end(), same_event);
  };
  std::vector<std::vector<int>> groups;
  for (size_t j = 0; j < plan.pipelines.size(); ++j) {
    const auto it = std::find_if(groups.begin(), groups.end(),
                                 [&](const std::vector<int>& group) { return alike(group[0], j); });
    if (it == groups.end())
      groups.push_back({static_cast<int>(j)});
    else
      it->push_back(static_cast<int>(j));
  }
  return groups;
}

std::vector<size_t> pipeline_bases(const Plan& plan) {
  std::vector<size_t> base;
  size_t next = 0;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    base.push_back(next);
    next += pipeline.stages.size();
  }
  return base;
}

std::string pipelines_name(const std::vector<int>& pipelines) {
  std::string text = pipelines.size() == 1 ? "pipeline" : "pipelines";
  for (size_t i = 0; i < pipelines.size();) {
    size_t end = i + 1;
    while (end < pipelines.size() && pipelines[end] == pipelines[end - 1] + 1) ++end;
    text += fmt::format("{} {}", i == 0 ? "" : ",", pipelines[i]);
    if (end - i > 1) text += fmt::format("-{}", pipelines[end - 1]);
    i = end;
  }
  return text;
}

int num_gpu_groups(const Plan& plan, const PlanPipeline& pipeline) {
  return static_cast<int>(pipeline.stages.size()) / std::max(1, plan.interleave);
}

std::string gpu_group_layers(const Plan& plan, const PlanPipeline& pipeline, int group) {
  const size_t groups = static_cast<size_t>(num_gpu_groups(plan, pipeline));
  std::string layers;
  for (size_t i = static_cast<size_t>(group); i < pipeline.stages.size(); i += groups) {
    const PlanStage& stage = pipeline.stages[i];
    layers += layers.empty() ? "" : ", ";
    layers += stage.end_layer - stage.first_layer == 1
                  ? fmt::format("{}", stage.first_layer)
                  : fmt::format("{}-{}", stage.first_layer, stage.end_layer - 1);
  }
  return layers;
}

std::string gpu_group_name(const Plan& plan, const PlanPipeline& pipeline, int group) {
  const PlanStage& stage = pipeline.stages.at(group);
  return fmt::format("stage {}: {} x{}, layers {}", group, stage.gpu_type, stage.shape.gpus(),
                     gpu_group_layers(plan, pipeline, group));
}

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Control characters are not allowed in XML, not even escaped.
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return out;
}

}  // namespace sailor
