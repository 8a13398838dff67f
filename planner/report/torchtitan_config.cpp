#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/report/framework_config.h"
#include "planner/report/uniform_plan.h"

namespace sailor {
namespace {

std::string torchtitan_obstacle(const UniformPlan& plan, const TrainingSpec& training) {
  if (plan.precision != Precision::bf16 && plan.precision != Precision::fp32)
    return fmt::format("it has no {}", to_string(plan.precision));
  if (plan.precision == Precision::bf16 && plan.data == 1 && plan.splits_model())
    return "it trains a single pipeline with tensor or pipeline parallelism in fp32 only";
  if (plan.data > 1 && !shards_optimizer(plan.zero) && plan.splits_model())
    return "it keeps whole optimizer states only without tensor and pipeline parallelism";
  if (plan.recompute == Recompute::selective) return "it cannot recompute the inside of attention alone";
  const auto stages = static_cast<int64_t>(plan.layers.size());
  if (plan.pipeline > 1 && plan.interleave == 1 && plan.microbatches < stages)
    return fmt::format("its 1F1B needs as many microbatches as stages: {} microbatches, {} stages",
                       plan.microbatches, stages);
  if (plan.interleave > 1 && plan.microbatches % std::max(1, plan.microbatches / plan.pipeline) != 0)
    return fmt::format("its interleaved 1F1B cannot divide {} microbatches into rounds for {} stages",
                       plan.microbatches, plan.pipeline);
  if (training.optimizer.name != "adamw") return "it has no optimizer " + training.optimizer.name;
  return "";
}

// Modules of a stage, by TorchTitan's names.
std::string modules_of(const std::pair<int, int>& layers, int head) {
  std::vector<std::string> names;
  for (int layer = layers.first; layer < layers.second; ++layer) {
    if (layer == 0)
      names.emplace_back("\"tok_embeddings\"");
    else if (layer == head)
      names.emplace_back("\"norm\", \"output\"");
    else
      names.push_back(fmt::format("\"layers.{}\"", layer - 1));
  }
  return fmt::format("    [{}],\n", fmt::join(names, ", "));
}

std::string parallelism_text(const UniformPlan& plan, int head) {
  const bool shards = shards_optimizer(plan.zero);
  std::string text = fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "fsdp_reshard_after_forward = \"never\"\ntensor_parallel_degree = {}\ncontext_parallel_degree = 1\n"
      "pipeline_parallel_degree = {}\n",
      shards ? plan.copies : plan.data, shards ? plan.data / plan.copies : 1, plan.tensor, plan.pipeline);
  if (plan.pipeline == 1) return text;
  text += fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                      plan.interleave > 1 ? "Interleaved1F1B" : "1F1B", plan.microbatch);
  text += "module_fqns_per_model_part = [\n";
  for (const std::pair<int, int>& layers : plan.layers) text += modules_of(layers, head);
  return text + "]\n";
}

// The learning rate over time, or nothing if TorchTitan has no such schedule.
std::string schedule_text(const TrainingSpec& training) {
  const ScheduleSpec& schedule = training.schedule;
  const int64_t end = schedule.decay_steps > 0 ? schedule.decay_steps : training.steps;
  if (end == 0 || schedule.name == "inverse_sqrt" || (schedule.name != "constant" && end < training.steps))
    return "";
  std::string text =
      fmt::format("\n[lr_scheduler]\nwarmup_steps = {}\ntotal_steps = {}\n", schedule.warmup_steps, end);
  if (schedule.name == "constant") return text + "decay_ratio = 0.0\n";
  const bool wsd = schedule.name == "wsd";
  const std::string& shape = wsd ? schedule.annealing : schedule.name;
  if (wsd)
    text += fmt::format("decay_ratio = {}\n",
                        real_text(static_cast<double>(schedule.annealing_steps) / static_cast<double>(end)));
  return text + fmt::format("decay_type = \"{}\"\nmin_lr_factor = {}\n", shape == "1-sqrt" ? "sqrt" : shape,
                            real_text(schedule.min_lr / training.optimizer.lr));
}

}  // namespace

FrameworkConfig torchtitan_config(const JobSpec& whole, const Plan& of) {
  const JobSpec job = job_under(of, whole);
  const TrainingSpec& training = job.training;
  constexpr ConfigReach kReach{.copies = true, .recomputed_every = true};
  if (std::string why_not = uniform_obstacle(job, of, kReach); !why_not.empty()) return {why_not, "", {}};
  const UniformPlan plan = uniform_plan(job, of);
  FrameworkConfig out;
  out.why_not = torchtitan_obstacle(plan, training);
  if (!out.why_not.empty()) return out;
  const std::string precision = plan.precision == Precision::bf16 ? "bfloat16" : "float32";
  out.text = fmt::format("[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                         plan.pipeline > 1 ? plan.local_batch() : plan.microbatch, plan.global_batch,
                         job.model.sequence);
  if (training.steps > 0) out.text += fmt::format("steps = {}\n", training.steps);
  out.text += fmt::format("max_norm = {}\n",  // TorchTitan always clips: at infinity if the job does not
                          training.clip_grad_norm ? real_text(*training.clip_grad_norm) : "inf");
  out.text += fmt::format(
      "dtype = \"float32\"\nmixed_precision_param = \"{}\"\nmixed_precision_reduce = \"float32\"\n",
      precision);
  out.text += parallelism_text(plan, job.model.layers + 1);
  if (plan.recomputed_every > 0)
    out.text += fmt::format("\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"{}\"\n",
                            plan.recomputed_every);
  else
    out.text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n",
                            plan.recompute == Recompute::full ? "full" : "none");
  const OptimizerSpec& adamw = training.optimizer;
  out.text += fmt::format(
      "\n[optimizer]\nname = \"AdamW\"\nlr = {}\nbeta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}\n",
      real_text(adamw.lr), real_text(adamw.beta1), real_text(adamw.beta2), real_text(adamw.epsilon),
      real_text(adamw.weight_decay));
  const std::string schedule = schedule_text(training);
  out.text += schedule;
  out.notes = {start_note(plan), "add the model (model.name, model.flavor), its assets and the data set"};
  for (const std::string& note : {node_order_note(of), unsaid_note(training, true, !schedule.empty())})
    if (!note.empty()) out.notes.push_back(note);
  return out;
}

}  // namespace sailor
