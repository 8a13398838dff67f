// GPT-NeoX (Black et al., 2022), which Pythia's models are, too: rotary positions on the first part of every
// head, LayerNorm, exact GELU, biases everywhere but in the head. By default attention and MLP of a block
// both read what the block was given (`parallel_residual`).
//
// Parameters are those of gpt2.cpp without 0.position.weight. The stored rows of queries, keys and values are
// ordered as ours.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

using Bias = LayerParameters::Bias;

constexpr double kUsualFraction = 0.25;

void gpt_neox_parameters(LayerParameters& layer) {
  const ModelSpec& model = layer.model();
  const std::string tokens = "gpt_neox.embed_in.weight";
  if (layer.is_first()) {
    layer.token_embedding(tokens);
  } else if (layer.is_last()) {
    layer.layer_norm("norm", "gpt_neox.final_layer_norm");
    layer.head("embed_out.weight", tokens);
  } else {
    const std::string stored = fmt::format("gpt_neox.layers.{}.", layer.layer() - 1);
    layer.layer_norm("norm1", stored + "input_layernorm");
    layer.output_split("qkv", 3 * model.hidden, stored + "attention.query_key_value", Bias::yes);
    layer.input_split("proj", model.hidden, StoredRows::transpose_of(stored + "attention.dense"), Bias::yes);
    layer.layer_norm("norm2", stored + "post_attention_layernorm");
    layer.output_split("fc1", model.feed_forward, stored + "mlp.dense_h_to_4h", Bias::yes);
    layer.input_split("fc2", model.feed_forward, StoredRows::transpose_of(stored + "mlp.dense_4h_to_h"),
                      Bias::yes);
  }
}

std::optional<ModelProblem> gpt_neox_problem(const ModelSpec& model) {
  const int rotated = model.rotated_elements();
  if (rotated > 0 && rotated % 2 == 0) return std::nullopt;
  return ModelProblem{"rotary_fraction",
                      fmt::format("{} of heads of {} elements is {}; it must be an even number, at least 2",
                                  model.rotary_fraction, model.hidden / model.heads, rotated)};
}

std::string add_gpt_neox_flags(const ModelSpec& model, std::vector<std::string>& flags) {
  if (model.parallel_residual) return "its model adds attention and MLP of a block side by side";
  flags.emplace_back("--position-embedding-type rope");
  flags.push_back(fmt::format("--rotary-base {:.0f}", model.rotary_base));
  flags.push_back(fmt::format("--rotary-percent {}", model.rotary_fraction));
  return "";
}

void read_gpt_neox(const ModelConfig& config, ModelSpec& model) {
  config.require_flag("attention_bias", true, true);
  model.parallel_residual = config.flag("use_parallel_residual", true);
  RotarySettings rotary = read_rotary(config);
  // Where older files say it.
  if (!rotary.base) rotary.base = config.find("rotary_emb_base");
  if (!rotary.fraction) rotary.fraction = config.find("rotary_pct");
  if (rotary.base) model.rotary_base = rotary.base->number(1, 1e12);
  model.rotary_fraction = rotary.fraction ? rotary.fraction->number(0, 1) : kUsualFraction;
}

void write_gpt_neox(const ModelSpec& model, nlohmann::ordered_json& json) {
  using Json = nlohmann::ordered_json;
  json["use_parallel_residual"] = model.parallel_residual;
  json["rotary_emb_base"] = model.rotary_base;  // where older releases look for it
  json["rotary_pct"] = model.rotary_fraction;
  json["rope_parameters"] = Json{{"rope_theta", model.rotary_base},
                                 {"partial_rotary_factor", model.rotary_fraction},
                                 {"rope_type", "default"}};
  json["attention_bias"] = true;
  json["hidden_dropout"] = json["attention_dropout"] = 0.0;
}

}  // namespace

ModelFamily gpt_neox_family() {
  return {.name = "gpt-neox",
          .keys = {rotary_base_key(),
                   {.name = "rotary_fraction",
                    .member = &ModelSpec::rotary_fraction,
                    .otherwise = kUsualFraction},
                   {.name = "parallel_residual", .member = &ModelSpec::parallel_residual, .otherwise = true}},
          .biases = true,
          .qkv_biases = true,
          .problem = gpt_neox_problem,
          .parameters = gpt_neox_parameters,
          .add_megatron_flags = add_gpt_neox_flags,
          .config = {.model_type = "gpt_neox",
                     .architecture = "GPTNeoXForCausalLM",
                     .layers = "num_hidden_layers",
                     .hidden = "hidden_size",
                     .heads = "num_attention_heads",
                     .feed_forward = "intermediate_size",
                     .positions = "max_position_embeddings",
                     .norm_epsilon = "layer_norm_eps",
                     .activation = "hidden_act",
                     .activations = {"gelu"},
                     .read = read_gpt_neox,
                     .write = write_gpt_neox},
          .stored_prefix = "gpt_neox.",
          // Older files hold the causal mask of every block and the speeds of the rotation.
          .stored_buffers = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"}};
}

}  // namespace sailor
