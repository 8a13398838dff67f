// A key of `model:` for one of the choices that a model family makes: its name, the member of ModelSpec that
// it sets, and its limits. Limits that depend on other keys are checked by find_problem(). Plain value type.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

#include "planner/spec/field.h"
#include "planner/spec/model_spec.h"

namespace sailor {

struct ModelKey {
  using Member =
      std::variant<int ModelSpec::*, double ModelSpec::*, bool ModelSpec::*, std::string ModelSpec::*,
                   Norm ModelSpec::*, NormPlace ModelSpec::*, PositionEmbedding ModelSpec::*,
                   RotaryScaling ModelSpec::*, QkNorm ModelSpec::*, Activation ModelSpec::*>;

  std::string name;
  Member member;
  double least = 0;  // limits of a number
  double most = 1;

  void read(const Field& field, ModelSpec& model) const;  // throws InputError
  // The value in our JSON files.
  nlohmann::ordered_json to_json(const ModelSpec& model) const;
  void from_json(const nlohmann::ordered_json& json, ModelSpec& model) const;  // throws std::exception
  std::string text(const ModelSpec& model) const;                              // the value, without quotes
  bool equal(const ModelSpec& a, const ModelSpec& b) const;
  void copy(const ModelSpec& from, ModelSpec& to) const;
};

// All of them, in the order of ModelSpec.
const std::vector<ModelKey>& all_model_keys();
const ModelKey* find_model_key(const std::string& name);  // nullptr if there is none

}  // namespace sailor
