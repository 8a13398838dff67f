// Mistral (Jiang et al., 2023): as Llama; in some models every token attends to the last `attention_window`
// tokens only.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames mistral_tensors(const ModelSpec&) {
  return llama_names();
}

void map_mistral(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 8);
  map.head_size("head_dim");
  map.rotary({});
  map.window(4096);
}

}  // namespace

ModelFamily mistral_family() {
  return {.name = "mistral",
          .choices = llama_choices(),
          .keys = with_rotary_keys({"kv_heads", "head_size", "attention_window"}),
          .tensors = mistral_tensors,
          .config = {.model_type = "mistral",
                     .architecture = "MistralForCausalLM",
                     .norm_epsilon = "rms_norm_eps",
                     .activations = {{"silu", Activation::silu}, {"swish", Activation::silu}},
                     .map = map_mistral},
          .stored_prefix = "model."};
}

}  // namespace sailor
