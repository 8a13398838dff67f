// Small models of every registered family: with its defaults, with tied embeddings, and with each of its
// optional keys set to another value.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "planner/spec/model_family.h"

namespace sailor::test {

struct FamilyModel {
  std::string label;
  ModelSpec model;
};

inline bool is_number(const ModelKey& key) {
  return std::holds_alternative<int ModelSpec::*>(key.member) ||
         std::holds_alternative<double ModelSpec::*>(key.member);
}

// A value that any small model may have, as in a job spec.
inline std::string value_of(const ModelKey& key) {
  if (std::holds_alternative<bool ModelSpec::*>(key.member))
    return key.name == "shared_norm" ? "false" : "true";
  if (key.name == "positions") return "9";
  if (key.name == "window_pattern") return "LG";
  if (key.name == "head_size") return "8";
  if (key.name == "rotary_low_frequency") return "2";
  ModelSpec model;
  return is_number(key) ? "1" : key.text(model);
}

struct Change {
  ModelSpec& model;
  const ModelKey& key;
  void operator()(bool ModelSpec::*member) const { model.*member = !(model.*member); }
  void operator()(double ModelSpec::*member) const {
    model.*member = model.*member > 0 ? 0.5 * (model.*member + key.least) : 0.5;
  }
  void operator()(int ModelSpec::*member) const { model.*member = 2; }
  void operator()(std::string ModelSpec::*member) const { model.*member = "GL"; }
  template <class Choice>
  void operator()(Choice ModelSpec::*member) const {
    model.*member = static_cast<Choice>(1);
  }
};

// The models of a family in which `key` is not as usual.
inline std::vector<ModelSpec> changed(const ModelSpec& model, const ModelKey& key) {
  std::vector<ModelSpec> models = {model};
  ModelSpec& first = models.front();
  std::visit(Change{first, key}, key.member);
  if (key.name == "positions") first.positions = model.sequence + 3;
  if (key.name == "attention_window") first.attention_window = 5;
  if (key.name == "head_size") first.head_size = 8;
  if (key.name == "window_pattern") first.attention_window = 3;
  if (key.name == "local_rotary_base") first.attention_window = 3;
  if (key.name == "shared_norm") first.parallel_residual = true;
  if (key.name == "unused_positions") first.position_embedding = PositionEmbedding::learned;
  if (key.name.starts_with("rotary_") && key.name != "rotary_base" && key.name != "rotary_fraction") {
    if (key.name != "rotary_scaling") return {};  // together with it
    models.clear();
    for (const RotaryScaling scaling :
         {RotaryScaling::linear, RotaryScaling::dynamic, RotaryScaling::llama3, RotaryScaling::yarn}) {
      models.push_back(model);
      models.back().rotary_scaling = scaling;
      models.back().rotary_factor = 4;
    }
    models[2].rotary_original_positions = models[3].rotary_original_positions = 5;
    models[2].rotary_low_frequency = 2;
    models[2].rotary_high_frequency = 3;
    models[3].rotary_attention_factor = 1.25;
    models[3].rotary_fast_rotations = 16;
    models[3].rotary_slow_rotations = 0.5;
    models[3].rotary_whole_limits = false;
  }
  return models;
}

// The first one has the defaults.
inline std::vector<FamilyModel> models_of(const ModelFamily& family) {
  ModelSpec model;
  set_family(model, family.name);
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.feed_forward = 96;
  model.sequence = 9;
  model.vocabulary = 19;
  std::vector<FamilyModel> models = {{family.name, model}, {family.name + ", tied", model}};
  models.back().model.tied_embeddings = true;
  for (const std::string& key : family.keys)
    for (ModelSpec& other : changed(model, *find_model_key(key)))
      models.push_back({family.name + ", " + key, std::move(other)});
  return models;
}

inline std::vector<FamilyModel> models_of_all_families() {
  std::vector<FamilyModel> all;
  for (const ModelFamily& family : model_families())
    for (FamilyModel& model : models_of(family)) all.push_back(std::move(model));
  return all;
}

}  // namespace sailor::test
