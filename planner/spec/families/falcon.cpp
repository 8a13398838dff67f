// Falcon (Almazrouei et al., 2023) with rotary positions: attention and MLP of a block both read what the
// block was given, after one norm each or one for both (`shared_norm`, as in Falcon 7B and Falcon 2);
// LayerNorm, exact GELU, few key and value heads, no other biases. Stored rows of queries, keys and values
// are ordered as ours.
#include <nlohmann/json.hpp>

#include "planner/spec/families/llama_like.h"

namespace sailor {
namespace {

TensorNames falcon_tensors(const ModelSpec& model) {
  return {.tokens = "transformer.word_embeddings",
          .positions = "",
          .final_norm = "transformer.ln_f",
          .block = "transformer.h.",
          .norm1 = model.shared_norm ? "input_layernorm" : "ln_attn",
          .norm1_after = "",
          .norm2 = "ln_mlp",
          .norm2_after = "",
          .query_norm = "",
          .key_norm = "",
          .qkv_rows = QkvRows::by_head,
          .qkv = {"self_attention.query_key_value"},
          .proj = "self_attention.dense",
          .up = {"mlp.dense_h_to_4h"},
          .down = "mlp.dense_4h_to_h"};
}

// Models of the first kind (7B) have one key and value head and one norm, and say so in other words.
void map_falcon_heads(ConfigMap& map) {
  ModelSpec& model = map.model();
  if (nlohmann::ordered_json* json = map.writes()) {
    const bool first = model.shared_norm && model.key_value_heads() == 1;
    (*json)["new_decoder_architecture"] = !first;
    if (first) {
      (*json)["multi_query"] = (*json)["parallel_attn"] = true;
    } else {
      (*json)["num_ln_in_parallel_attn"] = model.shared_norm ? 1 : 2;
    }
    map.kv_heads("num_kv_heads");
    return;
  }
  const ModelConfig& config = *map.reads();
  if (config.flag("new_decoder_architecture", false)) {
    map.kv_heads("num_kv_heads");
    const auto norms = config.find("num_ln_in_parallel_attn");
    model.shared_norm = norms && norms->integer<int>(1, 2) == 1;
    return;
  }
  map.only("multi_query", true, true);
  map.only("parallel_attn", true, true);
  model.kv_heads = 1;
  model.shared_norm = true;
}

void map_falcon(ConfigMap& map) {
  map_falcon_heads(map);
  map.rotary({});
  map.only("alibi", false, false);
  map.only("bias", false, false);
  map.no_dropout({"hidden_dropout", "attention_dropout"});
}

ModelSpec falcon_choices() {
  ModelSpec choices;  // of GPT-2
  choices.parallel_residual = true;
  choices.position_embedding = PositionEmbedding::rotary;
  choices.qkv_bias = choices.proj_bias = choices.mlp_bias = false;
  choices.activation = Activation::gelu;
  return choices;
}

}  // namespace

ModelFamily falcon_family() {
  return {.name = "falcon",
          .choices = falcon_choices(),
          .keys = with_rotary_keys({"kv_heads", "shared_norm"}),
          .tensors = falcon_tensors,
          .config = {.model_type = "falcon",
                     .architecture = "FalconForCausalLM",
                     .feed_forward = "ffn_hidden_size",
                     .usual_positions = 2048,
                     .norm_epsilon = "layer_norm_epsilon",
                     .usual_epsilon = 1e-5,
                     .activation = "activation",
                     .activations = {{"gelu", Activation::gelu}},
                     .usually_tied = true,
                     .map = map_falcon},
          .stored_prefix = "transformer."};
}

}  // namespace sailor
