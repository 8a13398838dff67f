// GPT-NeoX (Black et al., 2022), which Pythia's models are, too: rotary positions on the first part of every
// head, LayerNorm, exact GELU, biases everywhere but in the head. By default attention and MLP of a block
// both read what the block was given (`parallel_residual`). The stored rows of queries, keys and values are
// ordered as ours.
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

constexpr double kGptNeoxFraction = 0.25;

TensorNames gpt_neox_tensors(const ModelSpec&) {
  return {.tokens = "gpt_neox.embed_in",
          .positions = "",
          .final_norm = "gpt_neox.final_layer_norm",
          .head = "embed_out",
          .block = "gpt_neox.layers.",
          .norm1 = "input_layernorm",
          .norm1_after = "",
          .norm2 = "post_attention_layernorm",
          .norm2_after = "",
          .query_norm = "",
          .key_norm = "",
          .qkv_rows = QkvRows::by_head,
          .qkv = {"attention.query_key_value"},
          .proj = "attention.dense",
          .up = {"mlp.dense_h_to_4h"},
          .down = "mlp.dense_4h_to_h"};
}

void map_gpt_neox(ConfigMap& map) {
  map.only("attention_bias", true, true);
  map.flag("use_parallel_residual", &ModelSpec::parallel_residual, true);
  map.rotary({.fraction = kGptNeoxFraction,
              .base_key = "rotary_emb_base",
              .fraction_key = "rotary_pct",
              .scaling = false});
  map.no_dropout({"hidden_dropout", "attention_dropout"});
}

ModelSpec gpt_neox_choices() {
  ModelSpec choices;
  choices.parallel_residual = true;
  choices.position_embedding = PositionEmbedding::rotary;
  choices.rotary_fraction = kGptNeoxFraction;
  choices.activation = Activation::gelu;
  return choices;
}

}  // namespace

ModelFamily gpt_neox_family() {
  return {.name = "gpt-neox",
          .choices = gpt_neox_choices(),
          .keys = {"rotary_base", "rotary_fraction", "parallel_residual"},
          .tensors = gpt_neox_tensors,
          .config = {.model_type = "gpt_neox",
                     .architecture = "GPTNeoXForCausalLM",
                     .norm_epsilon = "layer_norm_eps",
                     .usual_epsilon = 1e-5,
                     .activations = {{"gelu", Activation::gelu}},
                     .map = map_gpt_neox},
          .stored_prefix = "gpt_neox.",
          // Older files hold the causal mask of every block and the speeds of the rotation.
          .stored_buffers = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"}};
}

}  // namespace sailor
