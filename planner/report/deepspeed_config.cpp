#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "planner/report/framework_config.h"
#include "planner/report/uniform_plan.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

std::string deepspeed_obstacle(const UniformPlan& plan) {
  if (plan.splits_model()) return "its configuration has no tensor and pipeline parallelism";
  if (plan.recompute != Recompute::none && plan.recompute != Recompute::full)
    return "it recomputes whole blocks only";
  if (plan.precision == Precision::fp64) return "it has no fp64";
  return "";
}

void add_deepspeed_precision(Json& config, Precision precision, const LossScaleSpec& scale) {
  if (precision == Precision::bf16) config["bf16"] = {{"enabled", true}};
  if (precision != Precision::fp16) return;
  config["fp16"] = {{"enabled", true},
                    {"initial_scale_power", std::bit_width(static_cast<uint64_t>(scale.initial)) - 1},
                    {"loss_scale_window", scale.window},
                    {"hysteresis", scale.hysteresis},
                    {"min_loss_scale", scale.minimum}};
}

}  // namespace

FrameworkConfig deepspeed_config(const JobSpec& whole, const Plan& of) {
  const JobSpec job = job_under(of, whole);
  const TrainingSpec& training = job.training;
  if (std::string why_not = uniform_obstacle(job, of, {}); !why_not.empty()) return {why_not, "", {}};
  const UniformPlan plan = uniform_plan(job, of);
  FrameworkConfig out;
  out.why_not = deepspeed_obstacle(plan);
  if (!out.why_not.empty()) return out;
  Json config = {{"train_batch_size", plan.global_batch},
                 {"train_micro_batch_size_per_gpu", plan.microbatch},
                 {"gradient_accumulation_steps", plan.microbatches},
                 {"zero_optimization", {{"stage", static_cast<int>(plan.zero)}}}};
  add_deepspeed_precision(config, plan.precision, training.loss_scale);
  if (training.clip_grad_norm) config["gradient_clipping"] = *training.clip_grad_norm;
  const OptimizerSpec& adamw = training.optimizer;
  const bool known = adamw.name == "adamw";
  if (known)
    config["optimizer"] = {{"type", "AdamW"},
                           {"params",
                            {{"lr", adamw.lr},
                             {"betas", {adamw.beta1, adamw.beta2}},
                             {"eps", adamw.epsilon},
                             {"weight_decay", adamw.weight_decay}}}};
  out.text = config.dump(2) + "\n";
  out.notes = {fmt::format("start {} ranks, all data-parallel", plan.ranks())};
  if (plan.recompute == Recompute::full)
    out.notes.emplace_back("the program must recompute its blocks (gradient_checkpointing_enable())");
  const bool constant = training.schedule == ScheduleSpec{};
  if (const std::string note = unsaid_note(training, known, constant); !note.empty())
    out.notes.push_back(note);
  return out;
}

}  // namespace sailor
