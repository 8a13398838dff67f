// Gemma (Gemma Team, 2024).
#include "planner/spec/families/gemma_like.h"

namespace sailor {
namespace {

TensorNames gemma_tensors(const ModelSpec&) {
  return llama_names();
}

void map_gemma(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 16);
  map.head_size("head_dim", 256);
  map.rotary({});
  map.biases("attention_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias}, false);
  map.only("use_bidirectional_attention", false, false);
}

}  // namespace

ModelSpec gemma_choices() {
  ModelSpec choices = llama_choices();
  choices.norm = Norm::zero_centred_rms;
  choices.activation = Activation::gelu_tanh;
  choices.embedding_scale = 0;
  return choices;
}

ModelFamily gemma_family() {
  return {.name = "gemma",
          .choices = gemma_choices(),
          .keys = with_rotary_keys({"kv_heads", "head_size"}),
          .tensors = gemma_tensors,
          .config = {.model_type = "gemma",
                     .architecture = "GemmaForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     // Older files say gelu, and mean this one.
                     .activations = {{"gelu_pytorch_tanh", Activation::gelu_tanh},
                                     {"gelu", Activation::gelu_tanh}},
                     .usually_tied = true,
                     .map = map_gemma},
          .stored_prefix = "model."};
}

}  // namespace sailor
