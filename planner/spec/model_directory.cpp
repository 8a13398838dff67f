#include "planner/spec/model_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

std::string missing_directory(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) return "";
  return fmt::format("{} is not a directory; give one with config.json and model.safetensors", directory);
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
  const ModelConfig config(document);
  const Field type = config.required("model_type");
  const ModelFamily* family = nullptr;
  std::vector<std::string> known;
  for (const ModelFamily& candidate : model_families()) {
    known.emplace_back(candidate.config.model_type);
    if (type.text() == candidate.config.model_type) family = &candidate;
  }
  if (family == nullptr) type.fail_type(alternatives(known));
  const ConfigForm* form = &family->config;

  ModelSpec model;
  model.family = family->name;
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
  if (family->learned_positions) model.positions = model.sequence;
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
  if (const auto problem = find_problem(model)) config.root().fail(problem->text);
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
  const ModelFamily* family = find_family(model.family);
  if (family == nullptr)
    throw InputError(fmt::format("model.family: models of family \"{}\" cannot be exported", model.family));
  const ConfigForm* form = &family->config;
  Json json;
  json["architectures"] = Json::array({form->architecture});
  json["model_type"] = form->model_type;
  json[form->layers] = model.layers;
  json[form->hidden] = model.hidden;
  json[form->heads] = model.heads;
  json[form->feed_forward] = model.feed_forward;
  json[form->positions] = family->learned_positions ? model.position_rows() : model.sequence;
  json["vocab_size"] = model.vocabulary;
  if (form->norm_epsilon != nullptr) json[form->norm_epsilon] = model.norm_epsilon;
  json[form->activation] = form->activations.front();
  json["tie_word_embeddings"] = model.tied_embeddings;
  // The tokenizer defines the begin, end and padding tokens; without these keys, they would be those of the
  // family's first model, which a smaller vocabulary does not have.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) json[token] = nullptr;
  form->write(model, json);
  json["torch_dtype"] = torch_dtype;
  return json.dump(2) + "\n";
}

}  // namespace sailor
