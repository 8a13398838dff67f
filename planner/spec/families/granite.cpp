// Granite 3 (IBM, 2024), dense: as Llama, with factors of embeddings, residuals, scores and logits.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames granite_tensors(const ModelSpec&) {
  return llama_names();
}

void map_granite(ConfigMap& map) {
  map.kv_heads("num_key_value_heads");
  map.head_size("head_dim");
  map.rotary({});
  map.biases("attention_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias}, false);
  map.biases("mlp_bias", {&ModelSpec::mlp_bias}, false);
  map.number("embedding_multiplier", &ModelSpec::embedding_scale, 1, 1e-9);
  map.number("residual_multiplier", &ModelSpec::residual_scale, 1, 0);
  map.score_scale("attention_multiplier", 1);
  map.logit_divisor("logits_scaling");
}

}  // namespace

ModelFamily granite_family() {
  return {.name = "granite",
          .choices = llama_choices(),
          .keys = with_rotary_keys(
              {"kv_heads", "embedding_scale", "residual_scale", "attention_scale", "logit_scale"}),
          .tensors = granite_tensors,
          .config = {.model_type = "granite",
                     .architecture = "GraniteForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
                     .map = map_granite},
          .stored_prefix = "model."};
}

}  // namespace sailor
