// Phi-3 and Phi-4 (Abdin et al., 2024), without LongRoPE: as Llama, with one stored tensor for queries, keys
// and values and one for gate and up. Some models rotate the first part of every head.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames phi3_tensors(const ModelSpec&) {
  TensorNames names = llama_names();
  names.qkv_rows = QkvRows::by_kind;
  names.qkv = {"self_attn.qkv_proj"};
  names.up = {"mlp.gate_up_proj"};
  return names;
}

void map_phi3(ConfigMap& map) {
  map.kv_heads("num_key_value_heads");
  map.rotary({.scaling = false});
  map.window(0);
  map.no_dropout({"embd_pdrop", "resid_pdrop", "attention_dropout"});
}

}  // namespace

ModelFamily phi3_family() {
  return {.name = "phi3",
          .choices = llama_choices(),
          .keys = {"kv_heads", "rotary_base", "rotary_fraction", "attention_window"},
          .tensors = phi3_tensors,
          .config = {.model_type = "phi3",
                     .architecture = "Phi3ForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .usual_epsilon = 1e-5,
                     .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
                     .map = map_phi3},
          .stored_prefix = "model."};
}

}  // namespace sailor
