#include <fmt/format.h>

#include "planner/report/framework_config.h"
#include "planner/report/uniform_plan.h"

namespace sailor {
namespace {

enum class Wrapped { alone, replicas, fsdp, deepspeed };  // the model

bool wraps_parameters(const JobSpec& job) {
  return job.trainer.kind == "fsdp" || job.trainer.kind == "hsdp";
}

Wrapped wrapped(const JobSpec& job, const UniformPlan& plan) {
  if (plan.zero == Zero::parameters && wraps_parameters(job)) return Wrapped::fsdp;
  if (shards_optimizer(plan.zero)) return Wrapped::deepspeed;
  return plan.ranks() > 1 ? Wrapped::replicas : Wrapped::alone;
}

std::string accelerate_obstacle(const UniformPlan& plan, const EvenNodes& nodes, Wrapped as) {
  if (plan.splits_model()) return "its launcher starts no tensor- or pipeline-parallel ranks for such plans";
  if (plan.recompute != Recompute::none && (as != Wrapped::fsdp || plan.recompute != Recompute::full))
    return "its configuration can ask for recomputation of whole blocks, with FSDP, and for no other";
  if (plan.precision == Precision::fp64) return "it has no fp64";
  if (nodes.placed && nodes.nodes == 0)
    return "its launcher starts as many ranks on every node, and the plan does not (`sailor launch` can)";
  return "";
}

}  // namespace

FrameworkConfig accelerate_config(const JobSpec& whole, const Plan& of) {
  const JobSpec job = job_under(of, whole);
  const ConfigReach reach{.copies = wraps_parameters(job)};
  if (std::string why_not = uniform_obstacle(job, of, reach); !why_not.empty()) return {why_not, "", {}};
  const UniformPlan plan = uniform_plan(job, of);
  const EvenNodes nodes = even_nodes(of);
  FrameworkConfig out;
  const Wrapped as = wrapped(job, plan);
  out.why_not = accelerate_obstacle(plan, nodes, as);
  if (!out.why_not.empty()) return out;
  const std::string precision = plan.precision == Precision::fp32 ? "'no'" : to_string(plan.precision);
  constexpr const char* kTypes[] = {"'NO'", "MULTI_GPU", "FSDP", "DEEPSPEED"};
  out.text = fmt::format("compute_environment: LOCAL_MACHINE\ndistributed_type: {}\n",
                         kTypes[static_cast<size_t>(as)]);
  if (as == Wrapped::fsdp)
    out.text += fmt::format(
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
        "  fsdp_activation_checkpointing: {}\n",
        plan.recompute == Recompute::full);
  if (as == Wrapped::fsdp && plan.copies > 1)
    out.text += fmt::format(
        "parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n"
        "  parallelism_config_dp_shard_size: {}\n",
        plan.copies, plan.data / plan.copies);
  if (as == Wrapped::deepspeed) {
    out.text += fmt::format("deepspeed_config:\n  gradient_accumulation_steps: {}\n", plan.microbatches);
    if (job.training.clip_grad_norm)
      out.text += fmt::format("  gradient_clipping: {}\n", real_text(*job.training.clip_grad_norm));
    out.text +=
        fmt::format("  offload_optimizer_device: none\n  offload_param_device: none\n  zero_stage: {}\n",
                    static_cast<int>(plan.zero));
  }
  out.text += fmt::format("mixed_precision: {}\nnum_processes: {}\n", precision, plan.ranks());
  if (nodes.nodes > 0) out.text += fmt::format("num_machines: {}\n", nodes.nodes);
  out.notes = {
      fmt::format("load batches of {} sequences per process, and start with `accelerate launch "
                  "--gradient_accumulation_steps {}`",
                  plan.microbatch, plan.microbatches)};
  if (nodes.nodes > 1)
    out.notes.emplace_back("on every node add --machine_rank, --main_process_ip and --main_process_port");
  return out;
}

}  // namespace sailor
