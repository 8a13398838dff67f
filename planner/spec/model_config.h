// A family's mapping of config.json, the file that describes the model of a Hugging Face model directory. A
// table of keys covers what all families have; two functions do the rest. Every setting that changes the
// mathematics is checked: a model that the trainer would compute differently is rejected.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// config.json is not our file: it has many keys that do not affect the mathematics.
class ModelConfig {
 public:
  explicit ModelConfig(const Document& document);

  std::optional<Field> find(const char* key) const;  // nothing when absent or null
  Field required(const char* key) const;
  int count(const char* key) const;  // required, at least 1
  bool flag(const char* key, bool otherwise) const;
  // The trainer only supports `value`.
  void require_flag(const char* key, bool value, bool otherwise) const;
  const Field& root() const { return root_; }

 private:
  Field root_;
};

struct ConfigForm {
  const char *model_type, *architecture;
  const char *layers, *hidden, *heads, *feed_forward, *positions;
  const char* norm_epsilon = nullptr;  // nullptr: the default
  const char* activation;
  std::vector<std::string> activations;  // names of the activation that the trainer computes
  bool usually_tied = false;
  void (*read)(const ModelConfig& config, ModelSpec& model) = nullptr;
  void (*write)(const ModelSpec& model, nlohmann::ordered_json& json) = nullptr;
};

// Rotary embeddings: newer files have a map for them, older ones top-level keys.
struct RotarySettings {
  std::optional<Field> base;
  std::optional<Field> fraction;  // fraction of a head that is rotated
};
// Throws InputError for scaled rotary embeddings.
RotarySettings read_rotary(const ModelConfig& config);

}  // namespace sailor
