// OPT (Zhang et al., 2022): as GPT-2, with learned positions of which the first two rows belong to no token,
// and a ReLU MLP.
#include <nlohmann/json.hpp>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

TensorNames opt_tensors(const ModelSpec&) {
  return {.tokens = "model.decoder.embed_tokens",
          .positions = "model.decoder.embed_positions",
          .final_norm = "model.decoder.final_layer_norm",
          .block = "model.decoder.layers.",
          .norm1 = "self_attn_layer_norm",
          .norm1_after = "",
          .norm2 = "final_layer_norm",
          .norm2_after = "",
          .query_norm = "",
          .key_norm = "",
          .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
          .proj = "self_attn.out_proj",
          .up = {"fc1"},
          .down = "fc2"};
}

void map_opt(ConfigMap& map) {
  map.only("do_layer_norm_before", true, true);
  map.only("_remove_final_layer_norm", false, false);
  map.only("enable_bias", true, true);
  map.only("layer_norm_elementwise_affine", true, true);
  map.no_dropout({"dropout", "attention_dropout"});
  constexpr const char* kWidth = "word_embed_proj_dim";
  if (nlohmann::ordered_json* json = map.writes()) {
    (*json)[kWidth] = map.model().hidden;
  } else if (const auto width = map.reads()->find(kWidth);
             width && map.reads()->count(kWidth) != map.model().hidden) {
    width->fail(
        "the trainer has embeddings as wide as the hidden state only; choose a model where it equals "
        "hidden_size");
  }
}

ModelSpec opt_choices() {
  ModelSpec choices;
  choices.unused_positions = 2;
  choices.activation = Activation::relu;
  return choices;
}

}  // namespace

ModelFamily opt_family() {
  return {.name = "opt",
          .choices = opt_choices(),
          .keys = {"positions"},
          .tensors = opt_tensors,
          .config = {.model_type = "opt",
                     .architecture = "OPTForCausalLM",
                     .feed_forward = "ffn_dim",
                     .activation = "activation_function",
                     .activations = {{"relu", Activation::relu}},
                     .usually_tied = true,
                     .map = map_opt},
          .stored_prefix = "model."};
}

}  // namespace sailor
