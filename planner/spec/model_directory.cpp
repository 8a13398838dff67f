#include "planner/spec/model_directory.h"

#include <fmt/format.h>

#include <algorithm>
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

std::string missing_directory(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) return "";
  return fmt::format("{} is not a directory; give one with config.json and model.safetensors", directory);
}

void read_activation(const ModelConfig& config, const ConfigForm& form, ModelSpec& model) {
  const auto field = config.find(form.activation);
  if (!field) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : form.activations) {
    names.push_back(name);
    if (field->text() != name) continue;
    model.activation = value;
    return;
  }
  field->fail_type(alternatives(names) + " for this family");
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
  set_family(model, family->name);
  model.layers = config.required(form->layers).integer<int>(1, 10'000);
  model.hidden = config.required(form->hidden).integer<int>(1, 10'000'000);
  model.heads = config.required(form->heads).integer<int>(1, 10'000'000);
  model.feed_forward = 4 * model.hidden;
  if (const auto width = config.find(form->feed_forward))
    model.feed_forward = width->integer<int>(1, 40'000'000);
  const bool has_positions = form->usual_positions == 0 || config.find(form->positions);
  model.sequence = model.positions = has_positions ? config.count(form->positions) : form->usual_positions;
  model.vocabulary = config.count("vocab_size");
  if (form->norm_epsilon != nullptr) {
    const auto epsilon = config.find(form->norm_epsilon);
    model.norm_epsilon = epsilon ? epsilon->number(1e-30, 1) : form->usual_epsilon;
  }
  read_activation(config, *form, model);
  model.tied_embeddings = config.flag("tie_word_embeddings", form->usually_tied);
  ConfigMap map(config, model);
  form->map(map);
  if (const auto problem = find_problem(model)) {
    const Field& place = problem->key == "heads" ? config.required(form->heads) : config.root();
    place.fail(problem->text);
  }
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

std::string to_model_config(const ModelSpec& given, const std::string& torch_dtype) {
  if (find_family(given.family) == nullptr)
    throw InputError(fmt::format("model.family: models of family \"{}\" cannot be exported", given.family));
  ModelSpec model = stored_as(given);
  const ConfigForm* form = &model_family(model.family).config;
  if (form->norm_epsilon == nullptr && std::abs(model.norm_epsilon - 1e-5) > 1e-12)
    throw InputError("model.norm_epsilon: this family's exported models have 1e-5");
  const auto activation = std::find_if(form->activations.begin(), form->activations.end(),
                                       [&](const auto& known) { return known.second == model.activation; });
  if (activation == form->activations.end())
    throw InputError(fmt::format("model.activation: models of family {} have no {}", model.family,
                                 word_of(model.activation)));
  Json json;
  json["architectures"] = Json::array({form->architecture});
  json["model_type"] = form->model_type;
  json[form->layers] = model.layers;
  json[form->hidden] = model.hidden;
  json[form->heads] = model.heads;
  json[form->feed_forward] = model.feed_forward;
  json[form->positions] = model.position_rows();
  json["vocab_size"] = model.vocabulary;
  if (form->norm_epsilon != nullptr) json[form->norm_epsilon] = model.norm_epsilon;
  json[form->activation] = activation->first;
  json["tie_word_embeddings"] = model.tied_embeddings;
  // The tokenizer defines the begin, end and padding tokens; without these keys, they would be those of the
  // family's first model, which a smaller vocabulary does not have.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) json[token] = nullptr;
  ConfigMap map(json, model);
  form->map(map);
  json["torch_dtype"] = torch_dtype;
  return json.dump(2) + "\n";
}

}  // namespace sailor
