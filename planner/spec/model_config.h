// A family's form of config.json, the file that describes the model of a Hugging Face model directory. What
// all families have is a table of keys; the rest are two functions. Every setting that changes the
// mathematics is inspected: a model that would not compute what the trainer computes is refused.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// config.json is somebody else's file: it has many keys that say nothing about the mathematics.
class ModelConfig {
 public:
  explicit ModelConfig(const Document& document);

  std::optional<Field> find(const char* key) const;  // nothing when absent or null
  Field required(const char* key) const;
  int count(const char* key) const;  // required, at least 1
  bool flag(const char* key, bool otherwise) const;
  // The trainer computes one of the possible values only.
  void require_flag(const char* key, bool value, bool otherwise) const;
  const Field& root() const { return root_; }

 private:
  Field root_;
};

struct ConfigForm {
  const char *model_type, *architecture;
  const char *layers, *hidden, *heads, *feed_forward, *positions;
  const char* norm_epsilon = nullptr;  // nullptr: always the usual
  const char* activation;
  std::vector<std::string> activations;  // names of the one that the trainer computes
  bool usually_tied = false;
  void (*read)(const ModelConfig& config, ModelSpec& model) = nullptr;
  void (*write)(const ModelSpec& model, nlohmann::ordered_json& json) = nullptr;
};

// Rotary positions, which newer files describe in a map of their own, and older ones beside everything else.
struct RotarySettings {
  std::optional<Field> base;
  std::optional<Field> fraction;  // of a head's elements that are rotated
};
// Throws InputError for positions that are scaled.
RotarySettings read_rotary(const ModelConfig& config);

}  // namespace sailor
