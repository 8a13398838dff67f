// GPT-Neo (Black et al., 2021): as GPT-2, but scores are not scaled, queries, keys and values have no biases,
// and in every second block (2, 4, ...) a token attends to the last `attention_window` tokens only.
// Parameters are those of gpt2.cpp without i.qkv.bias.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

using Bias = LayerParameters::Bias;

constexpr int kUsualWindow = 256;

void gpt_neo_parameters(LayerParameters& layer) {
  const ModelSpec& model = layer.model();
  const std::string tokens = "transformer.wte.weight";
  if (layer.is_first()) {
    layer.token_embedding(tokens);
    layer.position_embedding("transformer.wpe.weight");
  } else if (layer.is_last()) {
    layer.layer_norm("norm", "transformer.ln_f");
    layer.head("lm_head.weight", tokens);
  } else {
    const std::string stored = fmt::format("transformer.h.{}.", layer.layer() - 1);
    layer.layer_norm("norm1", stored + "ln_1");
    layer.output_split("qkv", 3 * model.hidden, separate_qkv(model, stored + "attn.attention."), Bias::no);
    layer.input_split("proj", model.hidden, StoredRows::transpose_of(stored + "attn.attention.out_proj"),
                      Bias::yes);
    layer.layer_norm("norm2", stored + "ln_2");
    layer.output_split("fc1", model.feed_forward, stored + "mlp.c_fc", Bias::yes);
    layer.input_split("fc2", model.feed_forward, StoredRows::transpose_of(stored + "mlp.c_proj"), Bias::yes);
  }
}

std::string add_gpt_neo_flags(const ModelSpec&, std::vector<std::string>&) {
  return "its model does not scale attention scores";
}

// `attention_types` is a list of [[kind, ...], how often]; what counts is the kind of every block.
void read_gpt_neo(const ModelConfig& config, ModelSpec& model) {
  const Field types = config.required("attention_types");
  std::vector<std::string> kinds;
  for (const Field& group : types.items()) {
    const std::vector<Field> pair = group.items();
    if (pair.size() != 2) group.fail("must be [[KIND, ...], REPEATS]");
    const int repeats = pair[1].integer<int>(1, 10'000);
    for (int i = 0; i < repeats; ++i)
      for (const Field& kind : pair[0].items()) kinds.push_back(kind.text());
  }
  if (static_cast<int>(kinds.size()) != model.layers)
    types.fail(fmt::format("describes {} blocks, the model has {}", kinds.size(), model.layers));
  bool all_global = true, alternate = true;
  for (size_t i = 0; i < kinds.size(); ++i) {
    all_global = all_global && kinds[i] == "global";
    alternate = alternate && kinds[i] == (i % 2 == 0 ? "global" : "local");
  }
  if (!all_global && !alternate)
    types.fail(
        "the trainer has blocks that are global and local in turn, or all global; choose another model");
  model.attention_window = all_global ? 0 : config.count("window_size");
}

void write_gpt_neo(const ModelSpec& model, nlohmann::ordered_json& json) {
  using Json = nlohmann::ordered_json;
  json["embed_dropout"] = json["attention_dropout"] = json["resid_dropout"] = 0.0;
  const bool alternate = model.attention_window > 0;
  json["window_size"] = alternate ? model.attention_window : kUsualWindow;
  Json types = Json::array();
  if (alternate && model.layers > 1)
    types.push_back(Json::array({Json::array({"global", "local"}), model.layers / 2}));
  if (!alternate || model.layers % 2 == 1)
    types.push_back(Json::array({Json::array({"global"}), alternate ? 1 : model.layers}));
  json["attention_types"] = types;
}

}  // namespace

ModelFamily gpt_neo_family() {
  return {.name = "gpt-neo",
          .keys = {positions_key(),
                   {.name = "attention_window",
                    .member = &ModelSpec::attention_window,
                    .otherwise = kUsualWindow,
                    .most = 100'000'000}},
          .learned_positions = true,
          .biases = true,
          .parameters = gpt_neo_parameters,
          .add_megatron_flags = add_gpt_neo_flags,
          .config = {.model_type = "gpt_neo",
                     .architecture = "GPTNeoForCausalLM",
                     .layers = "num_layers",
                     .hidden = "hidden_size",
                     .heads = "num_heads",
                     .feed_forward = "intermediate_size",
                     .positions = "max_position_embeddings",
                     .norm_epsilon = "layer_norm_epsilon",
                     .activation = "activation_function",
                     .activations = {"gelu_new", "gelu_pytorch_tanh"},
                     .usually_tied = true,
                     .read = read_gpt_neo,
                     .write = write_gpt_neo},
          .stored_prefix = "transformer.",
          // Older files hold the masks of every block.
          .stored_buffers = {".attn.attention.bias", ".attn.attention.masked_bias"}};
}

}  // namespace sailor
