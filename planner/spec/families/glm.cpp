// GLM (GLM Team, 2024): glm-4-9b-hf and the models of its time.
#include "planner/spec/families/glm.h"

namespace sailor {
namespace {

constexpr double kGlmFraction = 0.5;

void map_glm(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 2);
  map.head_size("head_dim", 128);
  map.rotary({.fraction = kGlmFraction});
  map.flag("attention_bias", &ModelSpec::qkv_bias, true);
  map.no_dropout({"attention_dropout"});
}

}  // namespace

ModelSpec glm_choices() {
  ModelSpec choices = llama_choices();
  choices.qkv_bias = true;
  choices.rotary_fraction = kGlmFraction;
  choices.rotary_interleaved = true;
  return choices;
}

TensorNames glm_tensors(const ModelSpec&) {
  TensorNames names = llama_names();
  names.up = {"mlp.gate_up_proj"};
  return names;
}

ConfigForm glm_config(const char* model_type, const char* architecture) {
  return {.model_type = model_type,
          .architecture = architecture,
          .norm_epsilon = "rms_norm_eps",
          .usual_epsilon = 1.5625e-7,
          .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
          .map = map_glm};
}

std::vector<std::string> glm_keys() {
  return with_rotary_keys({"kv_heads", "head_size", "rotary_fraction"});
}

ModelFamily glm_family() {
  return {.name = "glm",
          .choices = glm_choices(),
          .keys = glm_keys(),
          .tensors = glm_tensors,
          .config = glm_config("glm", "GlmForCausalLM"),
          .stored_prefix = "model."};
}

}  // namespace sailor
