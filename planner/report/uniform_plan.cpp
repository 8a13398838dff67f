#include "planner/report/uniform_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "planner/plan/rank_layout.h"
#include "planner/spec/framework_style.h"

namespace sailor {

namespace {

int blocks_of(const PlanStage& stage, const JobSpec& job) {
  return std::max(0, std::min(stage.end_layer, job.model.layers + 1) - std::max(stage.first_layer, 1));
}

// Of each stage of a pipeline, how many blocks it recomputes in full; nothing if blocks are at other levels.
std::vector<int> fully_recomputed(const PlanPipeline& pipeline, const JobSpec& job) {
  std::vector<int> out;
  for (const PlanStage& stage : pipeline.stages) {
    const StageRecompute& recompute = stage.recompute;
    const bool some = recompute.deep_blocks() > 0;
    if ((recompute.level() != Recompute::none && (some || recompute.level() != Recompute::full)) ||
        (some && recompute.deep() != Recompute::full))
      return {};
    out.push_back(some ? recompute.deep_blocks()
                       : (recompute.level() == Recompute::full ? blocks_of(stage, job) : 0));
  }
  return out;
}

// How many blocks every stage recomputes from its first one on, or all that it has if they are fewer; 0 if
// stages differ.
int first_recomputed(const PlanPipeline& pipeline, const JobSpec& job) {
  const std::vector<int> recomputed = fully_recomputed(pipeline, job);
  const int first = recomputed.empty() ? 0 : *std::ranges::max_element(recomputed);
  for (size_t i = 0; i < recomputed.size(); ++i)
    if (recomputed[i] != std::min(first, blocks_of(pipeline.stages[i], job))) return 0;
  return first;
}

// The n of every n-th block of a rank, or 0.
int recomputed_every(const Plan& plan, const PlanPipeline& pipeline, const JobSpec& job) {
  const std::vector<int> recomputed = fully_recomputed(pipeline, job);
  const size_t groups = static_cast<size_t>(num_groups(plan, pipeline));
  for (int every = 2; every <= job.model.layers && !recomputed.empty(); ++every) {
    bool same = true;
    for (size_t g = 0; g < groups && same; ++g)
      for (size_t i = g, blocks = 0; i < recomputed.size() && same; i += groups) {
        const size_t end = blocks + static_cast<size_t>(blocks_of(pipeline.stages[i], job)),
                     n = static_cast<size_t>(every);
        same = static_cast<size_t>(recomputed[i]) == end / n - blocks / n;
        blocks = end;
      }
    if (same) return every;
  }
  return 0;
}

// Why a configuration cannot say what stages recompute.
std::string recompute_obstacle(const JobSpec& job, const Plan& plan, const ConfigReach& reach) {
  const PlanPipeline& first = plan.pipelines.at(0);
  bool alike = true, some = false;
  for (const PlanStage& stage : first.stages) {
    const Recompute level = stage.recompute.level();
    if (level == Recompute::light || level == Recompute::mlp) return "it recomputes parts of blocks";
    alike = alike && stage.recompute == first.stages[0].recompute;
    some = some || stage.recompute.deep_blocks() > 0;
  }
  if (alike && !some) return "";
  if (reach.first_recomputed && first_recomputed(first, job) > 0) return "";
  if (reach.recomputed_every && recomputed_every(plan, first, job) > 0) return "";
  return some ? "some blocks of a stage recompute more than others" : "only some of its stages recompute";
}

}  // namespace

std::string uniform_obstacle(const JobSpec& job, const Plan& plan, const ConfigReach& reach) {
  if (job.training.lora) return "it trains adapters (LoRA)";
  if (plan.zero_group > 0 && !reach.copies)
    return "groups of its pipelines each have a copy of what ZeRO shards";
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
      if (stage.shape.cp > 1 && !reach.context) return "it has context parallelism";
      if (job.model.ring_degree(stage.shape) > 1 && !reach.ring)
        return "its context-parallel degree does not divide the heads of keys and values of a rank";
      if (stage.shape.cp != first.stages[0].shape.cp)
        return "its stages have different context-parallel degrees";
      if (stage.first_layer != like.first_layer || stage.end_layer != like.end_layer)
        return "its pipelines cut the layers differently";
      if (stage.recompute != like.recompute) return "its pipelines recompute different blocks";
      if (offloads(stage)) return "it offloads";
      if (stage.weight_delay != kWholeBackward) return "it delays the gradients of weights";
    }
  }
  if (std::string why_not = recompute_obstacle(job, plan, reach); !why_not.empty()) return why_not;
  const int microbatch = microbatch_of(plan, first);
  const int64_t round = int64_t{microbatch} * static_cast<int64_t>(plan.pipelines.size());
  if (plan.global_batch % round != 0)
    return fmt::format("its global batch of {} is not a multiple of {} pipelines x microbatches of {}",
                       plan.global_batch, plan.pipelines.size(), microbatch);
  return "";
}

UniformPlan uniform_plan(const JobSpec& job, const Plan& plan) {
  const PlanPipeline& first = plan.pipelines.at(0);
  UniformPlan out;
  out.tensor = first.stages.at(0).shape.tp;
  out.context = first.stages[0].shape.cp;
  out.ring = job.model.ring_degree(first.stages[0].shape);
  out.data = static_cast<int>(plan.pipelines.size());
  out.pipeline = num_groups(plan, first);
  out.interleave = plan.interleave;
  for (const PlanStage& stage : first.stages) {
    out.layers.emplace_back(stage.first_layer, stage.end_layer);
    out.blocks.push_back(blocks_of(stage, job));
  }
  out.microbatch = microbatch_of(plan, first);
  out.microbatches = first.microbatches;
  out.global_batch = plan.global_batch;
  const bool always_splits = !job.trainer.own() && framework_of_trainer(job).sequence_parallel;
  out.sequence_parallel = out.tensor > 1 && (plan.sequence_parallel || always_splits);
  out.zero = job.trainer.own() ? plan.zero : std::max(plan.zero, framework_of_trainer(job).zero);
  out.copies = num_zero_groups(plan);
  const auto recompute = [](const PlanStage& a, const PlanStage& b) {
    return a.recompute.deepest() < b.recompute.deepest();
  };
  out.recompute = std::ranges::max_element(first.stages, recompute)->recompute.deepest();
  const auto whole = [&](const PlanStage& stage) { return stage.recompute == out.recompute; };
  if (out.recompute == Recompute::full && !std::ranges::all_of(first.stages, whole)) {
    out.first_recomputed = first_recomputed(first, job);
    out.recomputed_every = recomputed_every(plan, first, job);
  }
  out.precision = precision_of(plan, job);
  return out;
}

std::string start_note(const UniformPlan& plan) {
  return fmt::format("start {} ranks: tensor-parallel {}{} x data-parallel {} x pipeline-parallel {}",
                     plan.ranks(), plan.tensor,
                     plan.context > 1 ? fmt::format(" x context-parallel {}", plan.context) : "", plan.data,
                     plan.pipeline);
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
