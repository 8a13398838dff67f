// GPT-2 (Radford et al., 2019): learned positions, pre-norm blocks, GELU (tanh) MLP, biases everywhere, final
// norm: the defaults of all choices.
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

// The stored matrices are [in, out] throughout.
TensorNames gpt2_tensors(const ModelSpec&) {
  return {.tokens = "transformer.wte",
          .positions = "transformer.wpe",
          .final_norm = "transformer.ln_f",
          .block = "transformer.h.",
          .norm1 = "ln_1",
          .norm1_after = "",
          .norm2 = "ln_2",
          .norm2_after = "",
          .query_norm = "",
          .key_norm = "",
          .qkv_rows = QkvRows::by_kind,
          .qkv = {"attn.c_attn"},
          .proj = "attn.c_proj",
          .up = {"mlp.c_fc"},
          .down = "mlp.c_proj",
          .inputs_first = true};
}

void map_gpt2(ConfigMap& map) {
  map.only("scale_attn_weights", true, true);
  map.only("scale_attn_by_inverse_layer_idx", false, false);
  map.only("add_cross_attention", false, false);
  map.no_dropout({"embd_pdrop", "attn_pdrop", "resid_pdrop"});
}

}  // namespace

ModelFamily gpt2_family() {
  return {.name = "gpt2",
          .choices = {},
          .keys = {"positions"},
          .tensors = gpt2_tensors,
          .config = {.model_type = "gpt2",
                     .architecture = "GPT2LMHeadModel",
                     .layers = "n_layer",
                     .hidden = "n_embd",
                     .heads = "n_head",
                     .feed_forward = "n_inner",
                     .positions = "n_positions",
                     .norm_epsilon = "layer_norm_epsilon",
                     .usual_epsilon = 1e-5,
                     .activation = "activation_function",
                     .activations = {{"gelu_new", Activation::gelu_tanh},
                                     {"gelu_pytorch_tanh", Activation::gelu_tanh}},
                     .usually_tied = true,
                     .map = map_gpt2},
          .stored_prefix = "transformer.",
          // Older files hold the causal mask of every block.
          .stored_buffers = {".attn.bias", ".attn.masked_bias"}};
}

}  // namespace sailor
