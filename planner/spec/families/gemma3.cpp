// Gemma 3 (Gemma Team, 2025), text only: five local blocks with rotary embeddings of their own for one global
// one, norms before and after, a norm of every query and key head.
#include "planner/spec/families/gemma_like.h"

namespace sailor {
namespace {

constexpr const char* kGemma3Pattern = "LLLLLG";
constexpr double kGemma3GlobalBase = 1e6, kGemma3LocalBase = 10'000;

TensorNames gemma3_tensors(const ModelSpec&) {
  return gemma2_names();
}

void map_gemma3(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 4);
  map.head_size("head_dim", 256);
  map.rotary(
      {.base = kGemma3GlobalBase, .local_base_key = "rope_local_base_freq", .local_base = kGemma3LocalBase});
  map.biases("attention_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias}, false);
  map.only("use_bidirectional_attention", false, false);
  map.query_scalar("query_pre_attn_scalar", 256);
  map.only_null("attn_logit_softcapping");
  map.optional_number("final_logit_softcapping", &ModelSpec::logit_soft_cap, 0);
  map.windows(kGemma3Pattern);
}

ModelSpec gemma3_choices() {
  ModelSpec choices = gemma2_choices();
  choices.window_pattern = kGemma3Pattern;
  choices.rotary_base = kGemma3GlobalBase;
  choices.local_rotary_base = kGemma3LocalBase;
  choices.qk_norm = QkNorm::heads;
  return choices;
}

}  // namespace

ModelFamily gemma3_family() {
  return {.name = "gemma3",
          .choices = gemma3_choices(),
          .keys = with_rotary_keys({"kv_heads", "head_size", "attention_window", "window_pattern",
                                    "local_rotary_base", "attention_scale", "logit_soft_cap"}),
          .tensors = gemma3_tensors,
          .config = {.model_type = "gemma3_text",
                     .architecture = "Gemma3ForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .activation = "hidden_activation",
                     .activations = {{"gelu_pytorch_tanh", Activation::gelu_tanh}},
                     .usually_tied = true,
                     .map = map_gemma3},
          .stored_prefix = "model."};
}

}  // namespace sailor
