#include "planner/simulator/compact_plan.h"

#include <map>
#include <string>
#include <utility>

namespace sailor::native {

CompactPlan compact(const Plan& plan, StageKinds& kinds) {
  CompactPlan out;
  out.microbatch = plan.microbatch;
  out.zero = plan.zero;
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
      compact.first_layer = stage.first_layer;
      compact.end_layer = stage.end_layer;
      compact.recompute = stage.recompute;
      compact.weight_delay = stage.weight_delay;
      if (!stage.node.empty())
        compact.node = nodes.try_emplace(stage.node, static_cast<int>(nodes.size())).first->second;
      out.stages.push_back(compact);
      before = &stage;
    }
    out.first.push_back(static_cast<int>(out.stages.size()));
    out.microbatches.push_back(pipeline.microbatches);
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
