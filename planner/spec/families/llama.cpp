// Llama (Touvron et al., 2023): rotary positions, RMSNorm, gated MLP (SwiGLU), grouped-query attention, no
// biases. Llama 3.1 and later scale the rotary embeddings.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames llama_tensors(const ModelSpec&) {
  return llama_names();
}

void map_llama(ConfigMap& map) {
  map.kv_heads("num_key_value_heads");
  map.head_size("head_dim");
  map.rotary({});
  map.biases("attention_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias}, false);
  map.biases("mlp_bias", {&ModelSpec::mlp_bias}, false);
}

}  // namespace

ModelSpec llama_choices() {
  ModelSpec choices;
  choices.window_pattern = "L";
  choices.norm = Norm::rms;
  choices.position_embedding = PositionEmbedding::rotary;
  choices.qkv_bias = choices.proj_bias = choices.mlp_bias = false;
  choices.gated_mlp = true;
  choices.activation = Activation::silu;
  return choices;
}

std::vector<std::string> with_rotary_keys(std::vector<std::string> others) {
  others.insert(others.end(), {"rotary_base", "rotary_scaling", "rotary_factor", "rotary_original_positions",
                               "rotary_low_frequency", "rotary_high_frequency", "rotary_attention_factor",
                               "rotary_fast_rotations", "rotary_slow_rotations", "rotary_whole_limits"});
  return others;
}

ModelFamily llama_family() {
  return {.name = "llama",
          .choices = llama_choices(),
          .keys = with_rotary_keys({"kv_heads", "head_size"}),
          .tensors = llama_tensors,
          .config = {.model_type = "llama",
                     .architecture = "LlamaForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
                     .map = map_llama},
          .stored_prefix = "model.",
          // Older files hold the speeds of the rotation.
          .stored_buffers = {".rotary_emb.inv_freq"}};
}

}  // namespace sailor
