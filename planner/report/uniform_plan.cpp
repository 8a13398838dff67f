#include "planner/report/uniform_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "planner/plan/rank_layout.h"
#include "planner/spec/framework_style.h"

namespace sailor {

std::string uniform_obstacle(const JobSpec& job, const Plan& plan) {
  if (job.training.lora) return "it trains adapters (LoRA)";
  const PlanPipeline& first = plan.pipelines.at(0);
  for (const PlanPipeline& pipeline : plan.pipelines) {
    if (pipeline.stages.size() != first.stages.size())
      return "its pipelines have different numbers of stages";
    if (pipeline.microbatches != first.microbatches)
      return "its pipelines take different numbers of microbatches";
    if (microbatch_of(plan, pipeline) != microbatch_of(plan, first))
      return "its pipelines have microbatches of different sizes";
    for (size_t i = 0; i < first.stages.size(); ++i) {
      const PlanStage &stage = pipeline.stages[i], &like = first.stages[i];
      if (stage.shape.tp != first.stages[0].shape.tp)
        return "its stages have different tensor-parallel degrees";
      if (stage.shape.cp > 1) return "it has context parallelism";
      if (stage.first_layer != like.first_layer || stage.end_layer != like.end_layer)
        return "its pipelines cut the layers differently";
      if (stage.recompute != first.stages[0].recompute) return "only some of its stages recompute";
      if (stage.recompute.deep_blocks() > 0) return "some blocks of a stage recompute more than others";
      if (offloads(stage)) return "it offloads optimizer states";
      if (stage.weight_delay != kWholeBackward) return "it delays the gradients of weights";
      const Recompute level = stage.recompute.level();
      if (level == Recompute::light || level == Recompute::mlp) return "it recomputes parts of blocks";
    }
  }
  const int microbatch = microbatch_of(plan, first);
  const int64_t round = int64_t{microbatch} * static_cast<int64_t>(plan.pipelines.size());
  if (plan.global_batch % round != 0)
    return fmt::format("its global batch of {} is not a multiple of {} pipelines x microbatches of {}",
                       plan.global_batch, plan.pipelines.size(), microbatch);
  return "";
}

std::string obstacle_without_copies(const JobSpec& job, const Plan& plan) {
  if (plan.zero_group > 0) return "groups of its pipelines each have a copy of what ZeRO shards";
  return uniform_obstacle(job, plan);
}

UniformPlan uniform_plan(const JobSpec& job, const Plan& plan) {
  const PlanPipeline& first = plan.pipelines.at(0);
  UniformPlan out;
  out.tensor = first.stages.at(0).shape.tp;
  out.data = static_cast<int>(plan.pipelines.size());
  out.pipeline = num_groups(plan, first);
  out.interleave = plan.interleave;
  for (const PlanStage& stage : first.stages) {
    out.layers.emplace_back(stage.first_layer, stage.end_layer);
    out.blocks.push_back(std::min(stage.end_layer, job.model.layers + 1) - std::max(stage.first_layer, 1));
  }
  out.microbatch = microbatch_of(plan, first);
  out.microbatches = first.microbatches;
  out.global_batch = plan.global_batch;
  const bool always_splits = !job.trainer.own() && framework_of_trainer(job).sequence_parallel;
  out.sequence_parallel = out.tensor > 1 && (plan.sequence_parallel || always_splits);
  out.zero = job.trainer.own() ? plan.zero : std::max(plan.zero, framework_of_trainer(job).zero);
  out.copies = num_zero_groups(plan);
  out.recompute = first.stages[0].recompute.level();
  out.precision = precision_of(plan, job);
  return out;
}

std::string node_order_note(const Plan& plan) {
  std::set<std::string> types;
  for (size_t i = 0; i < plan.pipelines[0].stages.size(); ++i)
    for (const PlanPipeline& pipeline : plan.pipelines) {
      types.insert(pipeline.stages[i].gpu_type);
      if (pipeline.stages[i].gpu_type != plan.pipelines[0].stages[i].gpu_type)
        return "replicas of one stage are on different GPU types: start every rank on its GPU (`sailor "
               "launch`)";
    }
  if (types.size() < 2) return "";
  std::vector<std::string> order;
  for (int i = 0; i < num_groups(plan, plan.pipelines[0]); ++i)
    for (const PlanPipeline& pipeline : plan.pipelines) {
      const std::string& node = pipeline.stages[static_cast<size_t>(i)].node;
      if (!order.empty() && order.back() == node) continue;
      if (std::find(order.begin(), order.end(), node) != order.end())
        return fmt::format(
            "the order of ranks comes back to node {}: start every rank on its GPU (`sailor launch`)", node);
      order.push_back(node);
    }
  return fmt::format("stages are on different GPU types: start the nodes in this order: {}",
                     fmt::join(order, " "));
}

EvenNodes even_nodes(const Plan& plan) {
  const RankLayout layout(plan);
  EvenNodes out;
  for (const std::string& node : layout.nodes()) {
    if (node.empty()) return {};
    const int ranks = static_cast<int>(layout.ranks_on(node).size());
    if (out.nodes > 0 && ranks != out.ranks) return {0, 0, true};
    out = {out.nodes + 1, ranks, true};
  }
  return out;
}

}  // namespace sailor
