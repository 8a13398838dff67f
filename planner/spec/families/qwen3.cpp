// Qwen3 (Yang et al., 2025), dense: as Llama, with a norm of every query and key head.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

constexpr int kQwen3HeadSize = 128;

TensorNames qwen3_tensors(const ModelSpec&) {
  return llama_names();
}

void map_qwen3(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 32);
  map.head_size("head_dim", kQwen3HeadSize);
  map.rotary({});
  map.biases("attention_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias}, false);
  map.late_windows();
}

ModelSpec qwen3_choices() {
  ModelSpec choices = llama_choices();
  choices.qk_norm = QkNorm::heads;
  return choices;
}

}  // namespace

ModelFamily qwen3_family() {
  return {.name = "qwen3",
          .choices = qwen3_choices(),
          .keys = with_rotary_keys({"kv_heads", "head_size", "attention_window", "window_pattern"}),
          .tensors = qwen3_tensors,
          .config = {.model_type = "qwen3",
                     .architecture = "Qwen3ForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
                     .map = map_qwen3},
          .stored_prefix = "model."};
}

}  // namespace sailor
