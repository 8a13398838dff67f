// StarCoder2 (Lozhkov et al., 2024): rotary positions and grouped-query attention with LayerNorm, biases and
// an MLP without gate. Every token attends to the last `attention_window` tokens only.
#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames starcoder2_tensors(const ModelSpec&) {
  TensorNames names = llama_names();
  names.up = {"mlp.c_fc"};
  names.down = "mlp.c_proj";
  return names;
}

void map_starcoder2(ConfigMap& map) {
  map.kv_heads("num_key_value_heads", 2);
  map.head_size("head_dim");
  map.rotary({});
  map.biases("use_bias", {&ModelSpec::qkv_bias, &ModelSpec::proj_bias, &ModelSpec::mlp_bias}, true);
  map.window(0);
  map.no_dropout({"residual_dropout", "embedding_dropout", "attention_dropout"});
}

ModelSpec starcoder2_choices() {
  ModelSpec choices;  // of GPT-2
  choices.window_pattern = "L";
  choices.position_embedding = PositionEmbedding::rotary;
  return choices;
}

}  // namespace

ModelFamily starcoder2_family() {
  return {.name = "starcoder2",
          .choices = starcoder2_choices(),
          .keys = with_rotary_keys({"kv_heads", "attention_window"}),
          .tensors = starcoder2_tensors,
          .config = {.model_type = "starcoder2",
                     .architecture = "Starcoder2ForCausalLM",
                     .norm_epsilon = "norm_epsilon",
                     .usual_epsilon = 1e-5,
                     .activations = {{"gelu_pytorch_tanh", Activation::gelu_tanh},
                                     {"gelu_new", Activation::gelu_tanh}},
                     .usually_tied = true,
                     .map = map_starcoder2},
          .stored_prefix = "model."};
}

}  // namespace sailor
