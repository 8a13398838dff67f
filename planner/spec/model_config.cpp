#include "planner/spec/model_config.h"

#include <fmt/format.h>

namespace sailor {
namespace {

constexpr int kMostSize = 100'000'000;

}  // namespace

ModelConfig::ModelConfig(const Document& document) : root_(document) {
  if (!root_.is_map()) root_.fail("must be a map, as config.json of a model directory is");
}

std::optional<Field> ModelConfig::find(const char* key) const {
  const DocumentNode* node = root_.node().find(key);
  if (node == nullptr || node->kind == DocumentNode::Kind::null) return std::nullopt;
  return Field(root_.document(), *node);
}

Field ModelConfig::required(const char* key) const {
  if (auto field = find(key)) return *field;
  root_.fail(fmt::format("missing key \"{}\"", key));
}

int ModelConfig::count(const char* key) const {
  return required(key).integer<int>(1, kMostSize);
}

bool ModelConfig::flag(const char* key, bool otherwise) const {
  const auto field = find(key);
  return field ? field->boolean() : otherwise;
}

void ModelConfig::require_flag(const char* key, bool value, bool otherwise) const {
  if (flag(key, otherwise) == value) return;
  find(key).value_or(root_).fail(
      fmt::format("the trainer has {} = {} only; choose another model", key, value));
}

RotarySettings read_rotary(const ModelConfig& config) {
  RotarySettings rotary{config.find("rope_theta"), std::nullopt};
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto map = config.find(key);
    if (!map) continue;
    for (const auto& [name, value] : map->entries()) {
      const bool is_type = name == "rope_type" || name == "type";
      if (name == "rope_theta") {
        rotary.base = value;
      } else if (name == "partial_rotary_factor") {
        rotary.fraction = value;
      } else if (!is_type || value.text() != "default") {
        value.fail("the trainer has plain rotary positions only, without scaling; choose another model");
      }
    }
  }
  return rotary;
}

}  // namespace sailor
