#include "planner/spec/model_key.h"

namespace sailor {
namespace {

struct Reader {
  const ModelKey& key;
  const Field& field;
  ModelSpec& model;

  void operator()(int ModelSpec::*member) const {
    model.*member = field.integer<int>(static_cast<int>(key.least), static_cast<int>(key.most));
  }
  void operator()(double ModelSpec::*member) const { model.*member = field.number(key.least, key.most); }
  void operator()(bool ModelSpec::*member) const { model.*member = field.boolean(); }
};

struct Setter {
  double value;
  ModelSpec& model;

  void operator()(int ModelSpec::*member) const { model.*member = static_cast<int>(value); }
  void operator()(double ModelSpec::*member) const { model.*member = value; }
  void operator()(bool ModelSpec::*member) const { model.*member = value != 0; }
};

}  // namespace

void ModelKey::read(const Field& field, ModelSpec& model) const {
  std::visit(Reader{*this, field, model}, member);
}

void ModelKey::set_default(ModelSpec& model) const {
  std::visit(Setter{otherwise, model}, member);
}

ModelKey positions_key() {
  return {.name = "positions", .member = &ModelSpec::positions, .least = 1, .most = 100'000'000};
}

ModelKey rotary_base_key() {
  return {.name = "rotary_base",
          .member = &ModelSpec::rotary_base,
          .otherwise = 10'000,
          .least = 1,
          .most = 1e12};
}

}  // namespace sailor
