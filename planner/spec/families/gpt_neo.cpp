// GPT-Neo (Black et al., 2021): as GPT-2, but scores are not scaled, queries, keys and values have no biases,
// and in every second block (2, 4, ...) a token attends to the last `attention_window` tokens only.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

constexpr int kGptNeoWindow = 256;

TensorNames gpt_neo_tensors(const ModelSpec&) {
  return {.tokens = "transformer.wte",
          .positions = "transformer.wpe",
          .final_norm = "transformer.ln_f",
          .block = "transformer.h.",
          .norm1 = "ln_1",
          .norm1_after = "",
          .norm2 = "ln_2",
          .norm2_after = "",
          .query_norm = "",
          .key_norm = "",
          .qkv = {"attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj"},
          .proj = "attn.attention.out_proj",
          .up = {"mlp.c_fc"},
          .down = "mlp.c_proj"};
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
  const bool alternate = model.attention_window > 0;
  json["window_size"] = alternate ? model.attention_window : kGptNeoWindow;
  Json types = Json::array();
  if (alternate && model.layers > 1)
    types.push_back(Json::array({Json::array({"global", "local"}), model.layers / 2}));
  if (!alternate || model.layers % 2 == 1)
    types.push_back(Json::array({Json::array({"global"}), alternate ? 1 : model.layers}));
  json["attention_types"] = types;
}

void map_gpt_neo(ConfigMap& map) {
  if (map.writes()) {
    write_gpt_neo(map.model(), *map.writes());
  } else {
    read_gpt_neo(*map.reads(), map.model());
  }
  map.no_dropout({"embed_dropout", "attention_dropout", "resid_dropout"});
}

ModelSpec gpt_neo_choices() {
  ModelSpec choices;
  choices.attention_window = kGptNeoWindow;
  choices.window_pattern = "GL";
  choices.qkv_bias = false;
  choices.attention_scale = 1;
  return choices;
}

}  // namespace

ModelFamily gpt_neo_family() {
  return {.name = "gpt-neo",
          .choices = gpt_neo_choices(),
          .keys = {"positions", "attention_window"},
          .tensors = gpt_neo_tensors,
          .config = {.model_type = "gpt_neo",
                     .architecture = "GPTNeoForCausalLM",
                     .layers = "num_layers",
                     .heads = "num_heads",
                     .norm_epsilon = "layer_norm_epsilon",
                     .usual_epsilon = 1e-5,
                     .activation = "activation_function",
                     .activations = {{"gelu_new", Activation::gelu_tanh},
                                     {"gelu_pytorch_tanh", Activation::gelu_tanh}},
                     .usually_tied = true,
                     .map = map_gpt_neo},
          .stored_prefix = "transformer.",
          // Older files hold the masks of every block.
          .stored_buffers = {".attn.attention.bias", ".attn.attention.masked_bias"}};
}

}  // namespace sailor
