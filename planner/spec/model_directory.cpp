#include "planner/spec/model_directory.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMost = 100'000'000;

// config.json is somebody else's file: it has many keys that say nothing about the mathematics.
class Config {
 public:
  explicit Config(const Document& document) : root_(document) {
    if (!root_.is_map()) root_.fail("must be a map, as config.json of a model directory is");
  }

  // Nothing when absent or null.
  std::optional<Field> find(const char* key) const {
    const DocumentNode* node = root_.node().find(key);
    if (node == nullptr || node->kind == DocumentNode::Kind::null) return std::nullopt;
    return Field(root_.document(), *node);
  }
  Field required(const char* key) const {
    if (auto field = find(key)) return *field;
    root_.fail(fmt::format("missing key \"{}\"", key));
  }
  int count(const char* key) const { return required(key).integer<int>(1, kMost); }
  bool flag(const char* key, bool otherwise) const {
    const auto field = find(key);
    return field ? field->boolean() : otherwise;
  }
  // The trainer computes one of the possible values only.
  void require_flag(const char* key, bool value, bool otherwise) const {
    if (flag(key, otherwise) == value) return;
    find(key).value_or(root_).fail(
        fmt::format("the trainer has {} = {} only; choose another model", key, value));
  }
  const Field& root() const { return root_; }

 private:
  Field root_;
};

void read_gpt2(const Config& config, ModelSpec&) {
  config.require_flag("scale_attn_weights", true, true);
  config.require_flag("scale_attn_by_inverse_layer_idx", false, false);
  config.require_flag("add_cross_attention", false, false);
}

void read_opt(const Config& config, ModelSpec& model) {
  config.require_flag("do_layer_norm_before", true, true);
  config.require_flag("_remove_final_layer_norm", false, false);
  config.require_flag("enable_bias", true, true);
  config.require_flag("layer_norm_elementwise_affine", true, true);
  if (const auto width = config.find("word_embed_proj_dim");
      width && width->integer(1, kMost) != model.hidden)
    width->fail(
        "the trainer has embeddings as wide as the hidden state only; choose a model where it equals "
        "hidden_size");
}

// `attention_types` is a list of [[kind, ...], how often]; what counts is the kind of every block.
void read_gpt_neo(const Config& config, ModelSpec& model) {
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

void read_llama(const Config& config, ModelSpec& model) {
  config.require_flag("attention_bias", false, false);
  config.require_flag("mlp_bias", false, false);
  if (const auto heads = config.find("num_key_value_heads")) {
    model.kv_heads = heads->integer<int>(1, model.heads);
    if (model.heads % model.kv_heads != 0)
      heads->fail(fmt::format("does not divide num_attention_heads, {}", model.heads));
  }
  if (const auto width = config.find("head_dim");
      width && width->integer(1, kMost) != model.hidden / model.heads)
    width->fail("the trainer has heads of hidden_size / num_attention_heads only; choose another model");
  // Newer files say it in a map of its own, older ones beside everything else.
  std::optional<Field> base = config.find("rope_theta");
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto map = config.find(key);
    if (!map) continue;
    for (const auto& [name, value] : map->entries()) {
      const bool is_type = name == "rope_type" || name == "type";
      if (name == "rope_theta") {
        base = value;
      } else if (!is_type || value.text() != "default") {
        value.fail("the trainer has plain rotary positions only, without scaling; choose another model");
      }
    }
  }
  if (base) model.rotary_base = base->number(1, 1e12);
}

void write_gpt2(const ModelSpec&, Json& json) {
  // Dropout is a choice of a training, not of the model: what this one had is not written, nor is it read.
  json["embd_pdrop"] = json["attn_pdrop"] = json["resid_pdrop"] = 0.0;
}

void write_opt(const ModelSpec& model, Json& json) {
  if (std::abs(model.norm_epsilon - 1e-5) > 1e-12)
    throw InputError("model.norm_epsilon: this family's exported models have 1e-5");
  json["word_embed_proj_dim"] = model.hidden;
  json["do_layer_norm_before"] = true;
  json["dropout"] = json["attention_dropout"] = 0.0;
}

void write_gpt_neo(const ModelSpec& model, Json& json) {
  json["embed_dropout"] = json["attention_dropout"] = json["resid_dropout"] = 0.0;
  const bool alternate = model.attention_window > 0;
  json["window_size"] = alternate ? model.attention_window : find_family(model.family)->attention_window;
  Json types = Json::array();
  if (alternate && model.layers > 1)
    types.push_back(Json::array({Json::array({"global", "local"}), model.layers / 2}));
  if (!alternate || model.layers % 2 == 1)
    types.push_back(Json::array({Json::array({"global"}), alternate ? 1 : model.layers}));
  json["attention_types"] = types;
}

void write_llama(const ModelSpec& model, Json& json) {
  json["num_key_value_heads"] = model.key_value_heads();
  json["head_dim"] = model.hidden / model.heads;
  json["rope_theta"] = model.rotary_base;  // where older releases look for it
  json["rope_parameters"] = Json{{"rope_theta", model.rotary_base}, {"rope_type", "default"}};
  json["attention_bias"] = json["mlp_bias"] = false;
}

// One family's form of config.json: the keys for what all families have, and the rest.
struct ConfigForm {
  const char *family, *model_type, *architecture;
  const char *layers, *hidden, *heads, *feed_forward, *positions;
  const char* norm_epsilon;  // nullptr: always the usual
  const char* activation;
  std::vector<std::string> activations;  // names of the one that the trainer computes
  bool usually_tied;
  void (*read)(const Config& config, ModelSpec& model);
  void (*write)(const ModelSpec& model, Json& json);
};

const std::vector<ConfigForm>& all_forms() {
  static const std::vector<ConfigForm> forms = {
      {.family = "gpt2",
       .model_type = "gpt2",
       .architecture = "GPT2LMHeadModel",
       .layers = "n_layer",
       .hidden = "n_embd",
       .heads = "n_head",
       .feed_forward = "n_inner",
       .positions = "n_positions",
       .norm_epsilon = "layer_norm_epsilon",
       .activation = "activation_function",
       .activations = {"gelu_new", "gelu_pytorch_tanh"},
       .usually_tied = true,
       .read = read_gpt2,
       .write = write_gpt2},
      {.family = "opt",
       .model_type = "opt",
       .architecture = "OPTForCausalLM",
       .layers = "num_hidden_layers",
       .hidden = "hidden_size",
       .heads = "num_attention_heads",
       .feed_forward = "ffn_dim",
       .positions = "max_position_embeddings",
       .norm_epsilon = nullptr,
       .activation = "activation_function",
       .activations = {"relu"},
       .usually_tied = true,
       .read = read_opt,
       .write = write_opt},
      {.family = "gpt-neo",
       .model_type = "gpt_neo",
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
      {.family = "llama",
       .model_type = "llama",
       .architecture = "LlamaForCausalLM",
       .layers = "num_hidden_layers",
       .hidden = "hidden_size",
       .heads = "num_attention_heads",
       .feed_forward = "intermediate_size",
       .positions = "max_position_embeddings",
       .norm_epsilon = "rms_norm_eps",
       .activation = "hidden_act",
       .activations = {"silu", "swish"},
       .usually_tied = false,
       .read = read_llama,
       .write = write_llama},
  };
  return forms;
}

std::string missing_directory(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) return "";
  return fmt::format("{} is no directory; give one with config.json and model.safetensors", directory);
}

ModelSpec read_directory(const std::string& directory) {
  const std::string file = directory + "/config.json";
  ModelSpec model = parse_model_config(read_text_file(file), file);
  model.from = directory;
  return model;
}

}  // namespace

ModelSpec parse_model_config(const std::string& json, const std::string& file_name) {
  const Document document = parse_json(json, file_name);
  const Config config(document);
  const Field type = config.required("model_type");
  const ConfigForm* form = nullptr;
  std::vector<std::string> known;
  for (const ConfigForm& candidate : all_forms()) {
    known.push_back(candidate.model_type);
    if (type.text() == candidate.model_type) form = &candidate;
  }
  if (form == nullptr) type.fail_type(alternatives(known));

  ModelSpec model;
  model.family = form->family;
  model.layers = config.required(form->layers).integer<int>(1, 10'000);
  model.hidden = config.required(form->hidden).integer<int>(1, 10'000'000);
  const Field heads = config.required(form->heads);
  model.heads = heads.integer<int>(1, 10'000'000);
  if (model.hidden % model.heads != 0)
    heads.fail(fmt::format("{} ({}) must be a multiple of it", form->hidden, model.hidden));
  model.feed_forward = 4 * model.hidden;
  if (const auto width = config.find(form->feed_forward))
    model.feed_forward = width->integer<int>(1, 40'000'000);
  model.sequence = config.count(form->positions);
  if (find_family(model.family)->learned_positions) model.positions = model.sequence;
  model.vocabulary = config.count("vocab_size");
  if (form->norm_epsilon != nullptr) {
    if (const auto epsilon = config.find(form->norm_epsilon)) model.norm_epsilon = epsilon->number(1e-30, 1);
  }
  if (const auto activation = config.find(form->activation);
      activation && std::find(form->activations.begin(), form->activations.end(), activation->text()) ==
                        form->activations.end()) {
    activation->fail_type(alternatives(form->activations) + " for this family");
  }
  model.tied_embeddings = config.flag("tie_word_embeddings", form->usually_tied);
  form->read(config, model);
  return model;
}

ModelSpec read_model_config(const std::string& directory, const Field& from) {
  if (const std::string problem = missing_directory(directory); !problem.empty()) from.fail(problem);
  return read_directory(directory);
}

ModelSpec read_model_config(const std::string& directory) {
  if (const std::string problem = missing_directory(directory); !problem.empty()) throw InputError(problem);
  return read_directory(directory);
}

std::string to_model_config(const ModelSpec& model, const std::string& torch_dtype) {
  const ConfigForm* form = nullptr;
  for (const ConfigForm& candidate : all_forms()) {
    if (model.family == candidate.family) form = &candidate;
  }
  if (form == nullptr)
    throw InputError(fmt::format("model.family: models of family \"{}\" cannot be exported", model.family));
  Json json;
  json["architectures"] = Json::array({form->architecture});
  json["model_type"] = form->model_type;
  json[form->layers] = model.layers;
  json[form->hidden] = model.hidden;
  json[form->heads] = model.heads;
  json[form->feed_forward] = model.feed_forward;
  json[form->positions] =
      find_family(model.family)->learned_positions ? model.position_rows() : model.sequence;
  json["vocab_size"] = model.vocabulary;
  if (form->norm_epsilon != nullptr) json[form->norm_epsilon] = model.norm_epsilon;
  json[form->activation] = form->activations.front();
  json["tie_word_embeddings"] = model.tied_embeddings;
  // Which tokens begin, end and fill a text is for the tokenizer to say; left out, they would be those of the
  // family's first model, which a smaller vocabulary does not have.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) json[token] = nullptr;
  form->write(model, json);
  json["torch_dtype"] = torch_dtype;
  return json.dump(2) + "\n";
}

}  // namespace sailor
