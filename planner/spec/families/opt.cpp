// OPT (Zhang et al., 2022): learned positions of which the first two rows belong to no token, pre-norm
// blocks, ReLU MLP, biases everywhere, final norm. Parameters are those of gpt2.cpp, with 0.position.weight
// [positions + 2, D].
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

using Bias = LayerParameters::Bias;

constexpr int kUnusedPositions = 2;

void opt_parameters(LayerParameters& layer) {
  const ModelSpec& model = layer.model();
  const std::string tokens = "model.decoder.embed_tokens.weight";
  if (layer.is_first()) {
    layer.token_embedding(tokens);
    layer.position_embedding("model.decoder.embed_positions.weight", kUnusedPositions);
  } else if (layer.is_last()) {
    layer.layer_norm("norm", "model.decoder.final_layer_norm");
    layer.head("lm_head.weight", tokens);
  } else {
    const std::string stored = fmt::format("model.decoder.layers.{}.", layer.layer() - 1);
    layer.layer_norm("norm1", stored + "self_attn_layer_norm");
    layer.output_split("qkv", 3 * model.hidden, separate_qkv(model, stored + "self_attn."), Bias::yes);
    layer.input_split("proj", model.hidden, StoredRows::transpose_of(stored + "self_attn.out_proj"),
                      Bias::yes);
    layer.layer_norm("norm2", stored + "final_layer_norm");
    layer.output_split("fc1", model.feed_forward, stored + "fc1", Bias::yes);
    layer.input_split("fc2", model.feed_forward, StoredRows::transpose_of(stored + "fc2"), Bias::yes);
  }
}

void read_opt(const ModelConfig& config, ModelSpec& model) {
  config.require_flag("do_layer_norm_before", true, true);
  config.require_flag("_remove_final_layer_norm", false, false);
  config.require_flag("enable_bias", true, true);
  config.require_flag("layer_norm_elementwise_affine", true, true);
  if (const auto width = config.find("word_embed_proj_dim");
      width && config.count("word_embed_proj_dim") != model.hidden)
    width->fail(
        "the trainer has embeddings as wide as the hidden state only; choose a model where it equals "
        "hidden_size");
}

void write_opt(const ModelSpec& model, nlohmann::ordered_json& json) {
  if (std::abs(model.norm_epsilon - 1e-5) > 1e-12)
    throw InputError("model.norm_epsilon: this family's exported models have 1e-5");
  json["word_embed_proj_dim"] = model.hidden;
  json["do_layer_norm_before"] = true;
  json["dropout"] = json["attention_dropout"] = 0.0;
}

}  // namespace

ModelFamily opt_family() {
  return {.name = "opt",
          .keys = {positions_key()},
          .learned_positions = true,
          .biases = true,
          .qkv_biases = true,
          .unused_positions = kUnusedPositions,
          .parameters = opt_parameters,
          .config = {.model_type = "opt",
                     .architecture = "OPTForCausalLM",
                     .layers = "num_hidden_layers",
                     .hidden = "hidden_size",
                     .heads = "num_attention_heads",
                     .feed_forward = "ffn_dim",
                     .positions = "max_position_embeddings",
                     .activation = "activation_function",
                     .activations = {"relu"},
                     .usually_tied = true,
                     .read = read_opt,
                     .write = write_opt},
          .stored_prefix = "model."};
}

}  // namespace sailor
