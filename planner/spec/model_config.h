// A family's mapping of config.json, the file that describes the model of a Hugging Face model directory, to
// a ModelSpec and back. A table of keys covers what all families have. One function per family lists the
// other keys; it runs on reading and on writing (ConfigMap). Every setting that changes the mathematics is
// checked: a model that the trainer would compute differently is rejected.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/field.h"
#include "planner/spec/model_spec.h"

namespace sailor {

// config.json is not our file: it has many keys that do not affect the mathematics.
class ModelConfig {
 public:
  explicit ModelConfig(const Document& document);

  std::optional<Field> find(const std::string& key) const;  // nothing when absent or null
  bool has(const std::string& key) const;                   // null counts
  Field required(const std::string& key) const;
  int count(const std::string& key) const;  // required, at least 1
  bool flag(const std::string& key, bool otherwise) const;
  const Field& root() const { return root_; }

 private:
  Field root_;
};

// Rotary embeddings: newer files have a map for them, older ones top-level keys.
struct RotaryForm {
  double base = 10'000;  // when the file does not say
  double fraction = 1;
  const char* base_key = "rope_theta";  // top-level keys of older files
  const char* fraction_key = "partial_rotary_factor";
  bool scaling = true;  // the package scales this family's
  // Local blocks have a base of their own, and no scaling: the key of it in older files, and the default.
  const char* local_base_key = nullptr;
  double local_base = 10'000;
};

class ConfigMap {
 public:
  // Reads into `model`, which has its sizes and the family's choices; throws InputError at the key.
  ConfigMap(const ModelConfig& config, ModelSpec& model) : config_(&config), model_(model) {}
  // Writes `model`; throws InputError when config.json of this family cannot express it.
  ConfigMap(nlohmann::ordered_json& json, ModelSpec& model) : json_(&json), model_(model) {}

  // One key for one member; `otherwise` is the package's default.
  void flag(const char* key, bool ModelSpec::*member, bool otherwise);
  void number(const char* key, double ModelSpec::*member, double otherwise, double least);
  // null, or absent without a default, is 0.
  void optional_number(const char* key, double ModelSpec::*member, double otherwise);
  // The only value of the key that the trainer computes.
  void only(const char* key, bool value, bool otherwise);
  void only_null(const char* key);
  void biases(const char* key, std::vector<bool ModelSpec::*> members, bool otherwise);
  void kv_heads(const char* key, int otherwise = 0);   // 0 = heads
  void head_size(const char* key, int otherwise = 0);  // 0 = hidden / heads
  // The scale of scores is 1 / sqrt(this integer).
  void query_scalar(const char* key, int otherwise);
  // The scale of logits is 1 / this number.
  void logit_divisor(const char* key);
  void rotary(const RotaryForm& form);
  // Every block has the window of `sliding_window`; absent, `otherwise`; null or 0, none has.
  void window(int otherwise);
  // `layer_types` says which blocks have it; absent, those of `pattern`.
  void windows(const std::string& pattern);
  // As Qwen: `use_sliding_window` and, for older files, the first block that has it.
  void late_windows();
  // Dropout is a choice of a training, not of the model: it is not read, and written as none.
  void no_dropout(std::initializer_list<const char*> keys);
  // The scale of scores itself.
  void score_scale(const char* key, double otherwise);
  // For what only one family has.
  const ModelConfig* reads() const { return config_; }
  nlohmann::ordered_json* writes() const { return json_; }
  ModelSpec& model() { return model_; }

 private:
  void read_rotary(const Field& map, const RotaryForm& form);
  void write_rotary(const RotaryForm& form);
  void set_score_scale(double scale);
  void write_window();
  void read_window(int otherwise);
  void read_layer_types(const std::string& pattern);
  void write_layer_types();
  // One pattern for models that compute the same.
  void set_pattern(const std::string& blocks);
  [[noreturn]] void cannot_write(const std::string& what) const;

  const ModelConfig* config_ = nullptr;
  nlohmann::ordered_json* json_ = nullptr;
  ModelSpec& model_;
};

// The keys that all families have, by their names in this family's files.
struct ConfigForm {
  const char *model_type, *architecture;
  const char *layers = "num_hidden_layers", *hidden = "hidden_size", *heads = "num_attention_heads",
             *feed_forward = "intermediate_size", *positions = "max_position_embeddings";
  int usual_positions = 0;             // when absent; 0 = it is required
  const char* norm_epsilon = nullptr;  // nullptr: always the default of 1e-5
  double usual_epsilon = 1e-6;         // when absent
  const char* activation = "hidden_act";
  // Names of the activations that files of the family have; the first of a value is written.
  std::vector<std::pair<std::string, Activation>> activations;
  bool usually_tied = false;
  void (*map)(ConfigMap& map) = nullptr;
};

}  // namespace sailor
