#include "planner/simulator/compact_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace sailor::native {

int sharers(const CompactPlan& plan, const StageKinds& kinds, int first_layer, int end_layer) {
  const int pipelines = plan.zero_group > 0 ? plan.zero_group : plan.pipelines();  // each group has as many
  if (!plan.splits_context) return pipelines;
  int sharers = 0;
  for (int j = 0; j < pipelines; ++j) {
    int fewest = std::numeric_limits<int>::max();
    for (const CompactStage& stage : plan.of(j))
      if (stage.first_layer < end_layer && stage.end_layer > first_layer)
        fewest = std::min(fewest, kinds.shape(stage.kind).copies());
    sharers += fewest;
  }
  return sharers;
}

bool has_replicas(const CompactPlan& plan, const StageKinds& kinds) {
  if (plan.pipelines() > 1 || !plan.splits_context) return plan.pipelines() > 1;
  return std::any_of(plan.stages.begin(), plan.stages.end(),
                     [&](const CompactStage& stage) { return kinds.shape(stage.kind).copies() > 1; });
}

Zero zero_of(const CompactPlan& plan, const StageKinds& kinds) {
  return has_replicas(plan, kinds) ? std::max(plan.zero, kinds.context().framework.zero) : Zero::none;
}

CompactPlan compact(const Plan& plan, StageKinds& kinds) {
  CompactPlan out;
  out.zero = plan.zero;
  out.zero_group = plan.zero_group;
  out.interleave = plan.interleave;
  out.sequence_parallel = plan.sequence_parallel;
  std::map<std::string, int> nodes;
  out.first.push_back(0);
  const PlanStage* before = nullptr;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) {
      CompactStage compact;
      // Neighbours are mostly of one kind.
      const bool alike = before != nullptr && before->shape == stage.shape &&
                         before->gpu_type == stage.gpu_type && before->zone == stage.zone;
      compact.kind = alike ? out.stages.back().kind
                           : kinds.number(stage.gpu_type, stage.zone, stage.shape, plan.sequence_parallel);
      out.splits_context = out.splits_context || stage.shape.cp > 1;
      compact.first_layer = stage.first_layer;
      compact.end_layer = stage.end_layer;
      compact.recompute = stage.recompute;
      compact.weight_delay = stage.weight_delay;
      compact.offload = stage.offload;
      if (offloads(stage)) kinds.require_offload(compact.kind);
      if (!stage.node.empty())
        compact.node = nodes.try_emplace(stage.node, static_cast<int>(nodes.size())).first->second;
      out.stages.push_back(compact);
      before = &stage;
    }
    out.first.push_back(static_cast<int>(out.stages.size()));
    out.microbatches.push_back(pipeline.microbatches);
    out.microbatch.push_back(microbatch_of(plan, pipeline));
  }
  out.nodes = static_cast<int>(nodes.size());
  auto bills = std::make_shared<std::vector<std::optional<NodeBill>>>(nodes.size());
  for (const SnapshotNode& node : kinds.context().snapshot.nodes)
    if (const auto it = nodes.find(node.name); it != nodes.end())
      (*bills)[static_cast<size_t>(it->second)] = bill_of(kinds.context(), node);
  out.bills = std::move(bills);
  return out;
}

}  // namespace sailor::native
