#include <fmt/format.h>

#include <algorithm>

#include "planner/report/framework_config.h"
#include "planner/report/uniform_plan.h"

namespace sailor {
namespace {

std::string nemo_obstacle(const UniformPlan& plan, const TrainingSpec& training, const EvenNodes& nodes) {
  if (plan.precision != Precision::bf16)
    return fmt::format("a recipe's precision is bf16, and its YAML cannot change that to {}",
                       to_string(plan.precision));
  if (training.optimizer.name != "adamw") return "its recipes have no optimizer " + training.optimizer.name;
  if (nodes.placed && nodes.nodes == 0)
    return "its trainer has as many devices on every node, and the plan does not";
  return "";
}

// The stages where they are not equal: every entry by its letters, as in Megatron-Core.
std::string layout_of(const UniformPlan& plan) {
  if (std::all_of(plan.blocks.begin(), plan.blocks.end(),
                  [&](int blocks) { return blocks > 0 && blocks == plan.blocks[0]; }))
    return "";
  std::string text = "E";
  for (size_t i = 0; i < plan.blocks.size(); ++i)
    text += (i == 0 ? "" : "|") + std::string(static_cast<size_t>(std::max(0, plan.blocks[i])), 't');
  return text + "L";
}

std::string strategy_text(const UniformPlan& plan) {
  std::string text = fmt::format(
      "  strategy:\n    tensor_model_parallel_size: {}\n    pipeline_model_parallel_size: {}\n"
      "    context_parallel_size: {}\n    sequence_parallel: {}\n",
      plan.tensor, plan.pipeline, plan.context, plan.sequence_parallel);
  text += fmt::format("    virtual_pipeline_model_parallel_size: {}\n",
                      plan.interleave > 1 ? fmt::format("{}", plan.interleave) : "null");
  if (const std::string layout = layout_of(plan); !layout.empty())
    text += fmt::format("    pipeline_model_parallel_layout: \"{}\"\n", layout);
  if (plan.copies > 1) text += fmt::format("    num_distributed_optimizer_instances: {}\n", plan.copies);
  return text + fmt::format("    ddp:\n      use_distributed_optimizer: {}\n", shards_optimizer(plan.zero));
}

std::string model_text(const UniformPlan& plan) {
  std::string text = "model:\n  config:\n";
  if (plan.context > 1) text += "    cp_comm_type: a2a\n";
  if (plan.recompute == Recompute::selective) return text + "    recompute_granularity: selective\n";
  if (plan.recompute == Recompute::none) return text + "    recompute_granularity: null\n";
  return text + fmt::format(
                    "    recompute_granularity: full\n    recompute_method: {}\n"
                    "    recompute_num_layers: {}\n",
                    plan.first_recomputed > 0 ? "block" : "uniform", std::max(1, plan.first_recomputed));
}

}  // namespace

FrameworkConfig nemo_config(const JobSpec& whole, const Plan& of) {
  const JobSpec job = job_under(of, whole);
  const TrainingSpec& training = job.training;
  constexpr ConfigReach kReach{.copies = true, .context = true, .first_recomputed = true};
  if (std::string why_not = uniform_obstacle(job, of, kReach); !why_not.empty()) return {why_not, "", {}};
  const UniformPlan plan = uniform_plan(job, of);
  const EvenNodes nodes = even_nodes(of);
  FrameworkConfig out;
  out.why_not = nemo_obstacle(plan, training, nodes);
  if (!out.why_not.empty()) return out;
  out.text = "trainer:\n";
  if (nodes.nodes > 0) out.text += fmt::format("  num_nodes: {}\n  devices: {}\n", nodes.nodes, nodes.ranks);
  if (training.steps > 0) out.text += fmt::format("  max_steps: {}\n", training.steps);
  out.text += "  accumulate_grad_batches: 1\n" + strategy_text(plan);
  out.text += "  plugins:\n    precision: bf16-mixed\n";
  out.text += fmt::format("data:\n  seq_length: {}\n  micro_batch_size: {}\n  global_batch_size: {}\n",
                          job.model.sequence, plan.microbatch, plan.global_batch);
  out.text += model_text(plan);
  const OptimizerSpec& adamw = training.optimizer;
  out.text += fmt::format(
      "optim:\n  config:\n    optimizer: adam\n    lr: {}\n    weight_decay: {}\n    adam_beta1: {}\n"
      "    adam_beta2: {}\n    adam_eps: {}\n    clip_grad: {}\n    bf16: true\n"
      "    use_distributed_optimizer: {}\n",
      real_text(adamw.lr), real_text(adamw.weight_decay), real_text(adamw.beta1), real_text(adamw.beta2),
      real_text(adamw.epsilon), real_text(training.clip_grad_norm.value_or(0)), shards_optimizer(plan.zero));
  out.notes = {start_note(plan)};
  for (const std::string& note : {node_order_note(of), unsaid_note(training, true, false)})
    if (!note.empty()) out.notes.push_back(note);
  return out;
}

}  // namespace sailor
