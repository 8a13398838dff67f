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

inline void change(ModelSpec& model, const ModelKey& key) {
  struct Change {
    ModelSpec& model;
    const ModelKey& key;
    void operator()(bool ModelSpec::*member) const { model.*member = !(model.*member); }
    void operator()(double ModelSpec::*member) const { model.*member = 0.5 * (key.otherwise + key.least); }
    void operator()(int ModelSpec::*member) const { model.*member = 2; }
  };
  std::visit(Change{model, key}, key.member);
  if (key.name == "positions") model.positions = model.sequence + 3;
}

// The first one has the defaults.
inline std::vector<FamilyModel> models_of(const ModelFamily& family) {
  ModelSpec model;
  model.family = family.name;
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.feed_forward = 96;
  model.sequence = 9;
  model.vocabulary = 19;
  for (const ModelKey& key : family.keys) key.set_default(model);
  std::vector<FamilyModel> models = {{family.name, model}, {family.name + ", tied", model}};
  models.back().model.tied_embeddings = true;
  for (const ModelKey& key : family.keys) {
    models.push_back({family.name + ", " + key.name, model});
    change(models.back().model, key);
  }
  return models;
}

inline std::vector<FamilyModel> models_of_all_families() {
  std::vector<FamilyModel> all;
  for (const ModelFamily& family : model_families())
    for (FamilyModel& model : models_of(family)) all.push_back(std::move(model));
  return all;
}

}  // namespace sailor::test
