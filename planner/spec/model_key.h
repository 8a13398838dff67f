// A key of `model:` in job specs that not every family has: its name, the member of ModelSpec that it sets,
// and its limits. Limits that depend on other keys are checked by ModelFamily. Plain value type.
#pragma once

#include <string>
#include <variant>

#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct ModelKey {
  using Member = std::variant<int ModelSpec::*, double ModelSpec::*, bool ModelSpec::*>;

  std::string name;
  Member member;
  double otherwise = 0;  // default; 1 = true
  double least = 0;      // minimum of a number
  double most = 1;

  void read(const Field& field, ModelSpec& model) const;  // throws InputError
  void set_default(ModelSpec& model) const;
};

// Keys that several families have.
ModelKey positions_key();    // rows of a learned position embedding
ModelKey rotary_base_key();  // base of rotary embeddings

}  // namespace sailor
