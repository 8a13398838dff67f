// OLMo 2 (OLMo Team, 2024): as Llama, but norms of what attention and MLP add, and one norm of all queries
// and one of all keys.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames olmo2_tensors(const ModelSpec&) {
  TensorNames names = llama_names();
  names.norm1 = names.norm2 = "";
  names.norm1_after = "post_attention_layernorm";
  names.norm2_after = "post_feedforward_layernorm";
  return names;
}

void map_olmo2(ConfigMap& map) {
  map.kv_heads("num_key_value_heads");
  map.head_size("head_dim");
  map.rotary({});
  map.biases("attention_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias}, false);
}

ModelSpec olmo2_choices() {
  ModelSpec choices = llama_choices();
  choices.norm_place = NormPlace::after;
  choices.qk_norm = QkNorm::projection;
  return choices;
}

}  // namespace

ModelFamily olmo2_family() {
  return {.name = "olmo2",
          .choices = olmo2_choices(),
          .keys = with_rotary_keys({"kv_heads"}),
          .tensors = olmo2_tensors,
          .config = {.model_type = "olmo2",
                     .architecture = "Olmo2ForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .usual_epsilon = 1e-5,
                     .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
                     .map = map_olmo2},
          .stored_prefix = "model."};
}

}  // namespace sailor
