#include "planner/report/megatron_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/report/uniform_plan.h"
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

// Why Megatron-LM cannot express it, or nothing.
std::string obstacle(const JobSpec& job, const Plan& plan) {
  constexpr ConfigReach kReach{.copies = true, .context = true, .ring = true, .first_recomputed = true};
  if (std::string why_not = uniform_obstacle(job, plan, kReach); !why_not.empty()) return why_not;
  if (const PrecisionKind& precision = kind_of(job.training.precision); precision.megatron_flag == nullptr)
    return fmt::format("it has no {}", precision.name);
  return "";
}

// Every entry by its letters: E embedding, t block, L head.
std::string layout_text(const std::vector<int>& blocks) {
  std::string text = "E";
  for (size_t i = 0; i < blocks.size(); ++i)
    text += (i == 0 ? "" : "|") + std::string(static_cast<size_t>(std::max(0, blocks[i])), 't');
  return text + "L";
}

// How the blocks are cut into stages; says nothing where Megatron-LM's even cut is the plan's.
void add_cut(const UniformPlan& plan, std::vector<std::string>& flags) {
  const std::vector<int>& blocks = plan.blocks;
  const auto equal = [&](size_t from, size_t to) {
    return std::all_of(blocks.begin() + static_cast<std::ptrdiff_t>(from),
                       blocks.begin() + static_cast<std::ptrdiff_t>(to),
                       [&](int n) { return n == blocks[from]; });
  };
  const size_t P = blocks.size();
  if (equal(0, P) && blocks[0] > 0) {
    if (plan.interleave > 1)
      flags.push_back(fmt::format("--num-layers-per-virtual-pipeline-stage {}", blocks[0]));
    return;
  }
  const bool ends_only = plan.interleave == 1 && (P == 2 || equal(1, P - 1)) &&
                         *std::min_element(blocks.begin(), blocks.end()) > 0;
  if (!ends_only) {
    flags.push_back(fmt::format("--pipeline-model-parallel-layout {}", layout_text(blocks)));
    return;
  }
  if (P == 2 || blocks[0] != blocks[1])
    flags.push_back(fmt::format("--decoder-first-pipeline-num-layers {}", blocks[0]));
  if (P > 2 && blocks[P - 1] != blocks[1])
    flags.push_back(fmt::format("--decoder-last-pipeline-num-layers {}", blocks[P - 1]));
}

// What of the model Megatron-LM's flags cannot express, or nothing.
std::string model_obstacle(const ModelSpec& model) {
  if (model.score_scale() * std::sqrt(model.head_width()) != 1 && model.attention_scale > 0)
    return model.attention_scale == 1 ? "its model does not scale attention scores"
                                      : "its model scales attention scores in its own way";
  if (model.parallel_residual) return "its model adds attention and MLP of a block side by side";
  if (model.attends_locally(1) || model.mixes_local_blocks()) return "its model has windows of attention";
  if (model.norm_place != NormPlace::before) return "its model has norms after attention and MLP";
  if (model.qk_norm == QkNorm::projection) return "its model has norms over all queries and all keys";
  if (model.attention_soft_cap > 0 || model.logit_soft_cap > 0) return "its model has soft caps";
  if (model.embedding_scale != 1 || model.residual_scale != 1 || model.logit_scale != 1)
    return "its model scales embeddings, residuals or logits";
  if (model.gated_mlp && model.activation != Activation::silu)
    return "its model has a gate that is not SwiGLU";
  if (model.proj_bias != model.mlp_bias || (model.mlp_bias && !model.qkv_bias))
    return "its model has biases in some projections only";
  const bool plain = model.rotary_scaling == RotaryScaling::none;
  const bool as_llama = model.rotary_scaling == RotaryScaling::llama3 && model.original_positions() == 8192 &&
                        model.rotary_low_frequency == 1 && model.rotary_high_frequency == 4;
  if (!model.learned_positions() && !plain && !as_llama) return "its model scales rotary positions";
  return "";
}

// Returns why Megatron-LM cannot express it, or nothing.
std::string add_model(const ModelSpec& model, std::vector<std::string>& flags) {
  const auto add = [&](const char* name, int64_t value) {
    flags.push_back(fmt::format("{} {}", name, value));
  };
  add("--num-layers", model.layers);
  add("--hidden-size", model.hidden);
  add("--ffn-hidden-size", model.feed_forward);
  add("--num-attention-heads", model.heads);
  if (model.key_value_heads() != model.heads) {
    flags.emplace_back("--group-query-attention");
    add("--num-query-groups", model.key_value_heads());
  }
  add("--seq-length", model.sequence);
  add("--max-position-embeddings", std::max(model.sequence, model.position_rows()));
  flags.emplace_back("--attention-dropout 0");
  flags.push_back(fmt::format("--hidden-dropout {}", model.dropout));
  if (!model.tied_embeddings) flags.emplace_back("--untie-embeddings-and-output-weights");
  if (find_family(model.family) == nullptr) return "";
  if (std::string why_not = model_obstacle(model); !why_not.empty()) return why_not;
  if (model.head_size > 0) add("--kv-channels", model.head_size);
  if (!model.learned_positions()) {
    flags.emplace_back("--position-embedding-type rope");
    flags.push_back(fmt::format("--rotary-base {:.0f}", model.rotary_base));
    if (model.rotary_fraction != 1)
      flags.push_back(fmt::format("--rotary-percent {}", model.rotary_fraction));
    if (model.rotary_scaling == RotaryScaling::llama3) {
      flags.emplace_back("--use-rope-scaling");
      flags.push_back(fmt::format("--rope-scaling-factor {}", model.rotary_factor));
    }
  }
  if (model.qk_norm == QkNorm::heads) flags.emplace_back("--qk-layernorm");
  if (model.gated_mlp) flags.emplace_back("--swiglu");
  if (!model.mlp_bias) flags.emplace_back("--disable-bias-linear");
  if (model.qkv_bias && !model.mlp_bias) flags.emplace_back("--add-qkv-bias");
  if (model.norm != Norm::layer) flags.emplace_back("--normalization RMSNorm");
  if (model.norm == Norm::zero_centred_rms) flags.emplace_back("--apply-layernorm-1p");
  return "";
}

void add_precision(const TrainingSpec& training, std::vector<std::string>& flags) {
  const PrecisionKind& kind = kind_of(training.precision);
  if (const std::string flag = kind.megatron_flag; !flag.empty()) flags.push_back(flag);
  if (!kind.scales_loss) return;
  flags.push_back(fmt::format("--initial-loss-scale {}", training.loss_scale.initial));
  flags.push_back(fmt::format("--min-loss-scale {}", training.loss_scale.minimum));
  flags.push_back(fmt::format("--loss-scale-window {}", training.loss_scale.window));
  flags.push_back(fmt::format("--hysteresis {}", training.loss_scale.hysteresis));
}

}  // namespace

MegatronFlags megatron_flags(const JobSpec& whole, const Plan& plan) {
  const JobSpec job = job_under(plan, whole);
  MegatronFlags out;
  out.why_not = obstacle(job, plan);
  if (!out.why_not.empty()) return out;
  if (const std::string note = node_order_note(plan); !note.empty()) out.notes.push_back(note);
  const UniformPlan uniform = uniform_plan(job, plan);
  out.flags = {fmt::format("--tensor-model-parallel-size {}", uniform.tensor),
               fmt::format("--pipeline-model-parallel-size {}", uniform.pipeline)};
  if (uniform.context > 1) {
    out.flags.push_back(fmt::format("--context-parallel-size {}", uniform.context));
    // Where there are too few heads of keys and values, Megatron-LM splits the tokens again.
    const bool by_heads = uniform.ring < uniform.context;
    const bool by_tokens = uniform.ring > 1;
    out.flags.push_back(fmt::format("--cp-comm-type {}", !by_tokens ? "a2a" : by_heads ? "a2a+p2p" : "p2p"));
    if (by_heads && by_tokens)
      out.flags.push_back(fmt::format("--hierarchical-context-parallel-sizes {} {}",
                                      uniform.context / uniform.ring, uniform.ring));
  }
  add_cut(uniform, out.flags);
  out.flags.push_back(fmt::format("--micro-batch-size {}", plan.microbatch));
  out.flags.push_back(fmt::format("--global-batch-size {}", plan.global_batch));
  if (uniform.sequence_parallel) out.flags.emplace_back("--sequence-parallel");
  if (shards_optimizer(plan.zero)) out.flags.emplace_back("--use-distributed-optimizer");
  if (uniform.copies > 1)
    out.flags.push_back(fmt::format("--num-distributed-optimizer-instances {}", uniform.copies));
  if (uniform.recompute == Recompute::full) {
    out.flags.emplace_back("--recompute-granularity full");
    out.flags.emplace_back(uniform.first_recomputed > 0 ? "--recompute-method block"
                                                        : "--recompute-method uniform");
    out.flags.push_back(fmt::format("--recompute-num-layers {}", std::max(1, uniform.first_recomputed)));
  } else if (uniform.recompute == Recompute::selective) {
    out.flags.emplace_back("--recompute-granularity selective");
  }
  add_precision(job.training, out.flags);
  if (job.training.steps > 0) out.flags.push_back(fmt::format("--train-iters {}", job.training.steps));
  if (std::string why_not = add_model(job.model, out.flags); !why_not.empty()) return {why_not, {}, {}};
  out.notes.insert(out.notes.begin(), start_note(uniform));
  return out;
}

}  // namespace sailor
