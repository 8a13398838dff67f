// Gemma 2 (Gemma Team, 2024): windows in every second block from the first on, norms before and after,
// soft-capped scores and logits.
#include "planner/spec/families/gemma_like.h"

namespace sailor {
namespace {

constexpr const char* kGemma2Pattern = "LG";

TensorNames gemma2_tensors(const ModelSpec&) {
  return gemma2_names();
}

void map_gemma2(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 4);
  map.head_size("head_dim", 256);
  map.rotary({});
  map.biases("attention_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias}, false);
  map.only("use_bidirectional_attention", false, false);
  map.query_scalar("query_pre_attn_scalar", 256);
  map.optional_number("attn_logit_softcapping", &ModelSpec::attention_soft_cap, 50);
  map.optional_number("final_logit_softcapping", &ModelSpec::logit_soft_cap, 30);
  map.windows(kGemma2Pattern);
}

ModelSpec gemma2_usual_choices() {
  ModelSpec choices = gemma2_choices();
  choices.window_pattern = kGemma2Pattern;
  choices.attention_soft_cap = 50;
  choices.logit_soft_cap = 30;
  return choices;
}

}  // namespace

ModelSpec gemma2_choices() {
  ModelSpec choices = gemma_choices();
  choices.norm_place = NormPlace::both;
  return choices;
}

TensorNames gemma2_names() {
  TensorNames names = llama_names();
  names.norm1_after = "post_attention_layernorm";
  names.norm2 = "pre_feedforward_layernorm";
  names.norm2_after = "post_feedforward_layernorm";
  return names;
}

ModelFamily gemma2_family() {
  return {.name = "gemma2",
          .choices = gemma2_usual_choices(),
          .keys = with_rotary_keys({"kv_heads", "head_size", "attention_window", "window_pattern",
                                    "attention_scale", "attention_soft_cap", "logit_soft_cap"}),
          .tensors = gemma2_tensors,
          .config = {.model_type = "gemma2",
                     .architecture = "Gemma2ForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .activation = "hidden_activation",
                     .activations = {{"gelu_pytorch_tanh", Activation::gelu_tanh}},
                     .usually_tied = true,
                     .map = map_gemma2},
          .stored_prefix = "model."};
}

}  // namespace sailor
