#include "planner/report/megatron_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

// Why Megatron-LM cannot express it, or nothing.
std::string obstacle(const JobSpec& job, const Plan& plan) {
  if (job.training.lora) return "it trains adapters (LoRA)";
  const PlanPipeline& first = plan.pipelines.at(0);
  for (const PlanPipeline& pipeline : plan.pipelines) {
    if (pipeline.stages.size() != first.stages.size())
      return "its pipelines have different numbers of stages";
    if (pipeline.microbatches != first.microbatches)
      return "its pipelines take different numbers of microbatches";
    for (size_t i = 0; i < first.stages.size(); ++i) {
      const PlanStage &stage = pipeline.stages[i], &like = first.stages[i];
      if (stage.shape.tp != first.stages[0].shape.tp)
        return "its stages have different tensor-parallel degrees";
      if (stage.first_layer != like.first_layer || stage.end_layer != like.end_layer)
        return "its pipelines cut the layers differently";
      if (stage.recompute != first.stages[0].recompute) return "only some of its stages recompute";
    }
  }
  const int64_t round = static_cast<int64_t>(plan.microbatch) * static_cast<int64_t>(plan.pipelines.size());
  if (plan.global_batch % round != 0)
    return fmt::format("its global batch of {} is not a multiple of {} pipelines x microbatches of {}",
                       plan.global_batch, plan.pipelines.size(), plan.microbatch);
  if (const PrecisionKind& precision = kind_of(job.training.precision); precision.megatron_flag == nullptr)
    return fmt::format("it has no {}", precision.name);
  return "";
}

// Transformer blocks of each entry of a pipeline: without embedding and head.
std::vector<int> blocks_of(const JobSpec& job, const PlanPipeline& pipeline) {
  std::vector<int> blocks;
  for (const PlanStage& stage : pipeline.stages)
    blocks.push_back(std::min(stage.end_layer, job.model.layers + 1) - std::max(stage.first_layer, 1));
  return blocks;
}

// Every entry by its letters: E embedding, t block, L head.
std::string layout_text(const std::vector<int>& blocks) {
  std::string text = "E";
  for (size_t i = 0; i < blocks.size(); ++i)
    text += (i == 0 ? "" : "|") + std::string(static_cast<size_t>(std::max(0, blocks[i])), 't');
  return text + "L";
}

// How the blocks are cut into stages; says nothing where Megatron-LM's even cut is the plan's.
void add_cut(const JobSpec& job, const Plan& plan, std::vector<std::string>& flags) {
  const std::vector<int> blocks = blocks_of(job, plan.pipelines[0]);
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

// Which nodes in which order, so that every stage is on its own GPUs: only where stages differ in type.
void add_node_order(const Plan& plan, MegatronFlags& out) {
  std::set<std::string> types;
  for (size_t i = 0; i < plan.pipelines[0].stages.size(); ++i)
    for (const PlanPipeline& pipeline : plan.pipelines) {
      types.insert(pipeline.stages[i].gpu_type);
      if (pipeline.stages[i].gpu_type == plan.pipelines[0].stages[i].gpu_type) continue;
      out.notes.emplace_back(
          "replicas of one stage are on different GPU types: start every rank on its GPU (`sailor launch`)");
      return;
    }
  if (types.size() < 2) return;
  std::vector<std::string> order;
  for (int i = 0; i < num_groups(plan, plan.pipelines[0]); ++i)
    for (const PlanPipeline& pipeline : plan.pipelines) {
      const std::string& node = pipeline.stages[static_cast<size_t>(i)].node;
      if (!order.empty() && order.back() == node) continue;
      if (std::find(order.begin(), order.end(), node) != order.end()) {
        out.notes.push_back(fmt::format(
            "the order of ranks comes back to node {}: start every rank on its GPU (`sailor launch`)", node));
        return;
      }
      order.push_back(node);
    }
  out.notes.push_back(fmt::format("stages are on different GPU types: start the nodes in this order: {}",
                                  fmt::join(order, " ")));
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
  add_node_order(plan, out);
  const PlanStage& stage = plan.pipelines[0].stages[0];
  out.flags = {fmt::format("--tensor-model-parallel-size {}", stage.shape.tp),
               fmt::format("--pipeline-model-parallel-size {}", num_groups(plan, plan.pipelines[0]))};
  add_cut(job, plan, out.flags);
  out.flags.push_back(fmt::format("--micro-batch-size {}", plan.microbatch));
  out.flags.push_back(fmt::format("--global-batch-size {}", plan.global_batch));
  if (plan.sequence_parallel) out.flags.emplace_back("--sequence-parallel");
  if (shards_optimizer(plan.zero)) out.flags.emplace_back("--use-distributed-optimizer");
  if (stage.recompute == Recompute::full) {
    out.flags.emplace_back("--recompute-granularity full");
    out.flags.emplace_back("--recompute-method uniform");
    out.flags.emplace_back("--recompute-num-layers 1");
  } else if (stage.recompute == Recompute::selective) {
    out.flags.emplace_back("--recompute-granularity selective");
  }
  add_precision(job.training, out.flags);
  if (job.training.steps > 0) out.flags.push_back(fmt::format("--train-iters {}", job.training.steps));
  if (std::string why_not = add_model(job.model, out.flags); !why_not.empty()) return {why_not, {}, {}};
  out.notes.insert(out.notes.begin(),
                   fmt::format("start {} ranks: tensor-parallel {} x data-parallel {} x pipeline-parallel {}",
                               num_ranks(plan), stage.shape.tp, plan.pipelines.size(),
                               num_groups(plan, plan.pipelines[0])));
  return out;
}

}  // namespace sailor
