// Qwen2 and Qwen2.5 (Yang et al., 2024), dense: as Llama, with biases of queries, keys and values. Some
// models have a window in their later blocks.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames qwen2_tensors(const ModelSpec&) {
  return llama_names();
}

void map_qwen2(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 32);
  map.head_size("head_dim");
  map.rotary({});
  map.late_windows();
}

ModelSpec qwen2_choices() {
  ModelSpec choices = llama_choices();
  choices.qkv_bias = true;
  return choices;
}

}  // namespace

ModelFamily qwen2_family() {
  return {.name = "qwen2",
          .choices = qwen2_choices(),
          .keys = with_rotary_keys({"kv_heads", "attention_window", "window_pattern"}),
          .tensors = qwen2_tensors,
          .config = {.model_type = "qwen2",
                     .architecture = "Qwen2ForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
                     .map = map_qwen2},
          .stored_prefix = "model."};
}

}  // namespace sailor
