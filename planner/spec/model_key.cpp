#include "planner/spec/model_key.h"

#include <algorithm>
#include <stdexcept>

#include "planner/spec/strict_json.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostCount = 100'000'000;
constexpr double kMostHeads = 10'000'000;
constexpr size_t kMostPattern = 1024;

bool is_pattern(const std::string& text) {
  return !text.empty() && text.size() <= kMostPattern && text.find_first_not_of("GL") == std::string::npos;
}

struct Reader {
  const ModelKey& key;
  const Field& field;
  ModelSpec& model;

  void operator()(int ModelSpec::*member) const {
    model.*member = field.integer<int>(static_cast<int>(key.least), static_cast<int>(key.most));
  }
  void operator()(double ModelSpec::*member) const { model.*member = field.number(key.least, key.most); }
  void operator()(bool ModelSpec::*member) const { model.*member = field.boolean(); }
  void operator()(std::string ModelSpec::*member) const {
    model.*member = field.text();
    if (!is_pattern(model.*member))
      field.fail_type("letters G (global) and L (local) for block after block, such as LG");
  }
  template <class Choice>
  void operator()(Choice ModelSpec::*member) const {
    model.*member = static_cast<Choice>(field.choice(words_of(Choice())));
  }
};

template <class T>
Json json_of(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return word_of(value);
  else
    return value;
}

template <class T>
void read_json(const Json& json, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const std::vector<std::string>& words = words_of(T());
    const auto found = std::find(words.begin(), words.end(), json.get<std::string>());
    if (found == words.end()) throw std::runtime_error("unknown word " + json.dump());
    value = static_cast<T>(found - words.begin());
  } else {
    StrictNumbers<T>::from_json(json, value);
  }
}

}  // namespace

void ModelKey::read(const Field& field, ModelSpec& model) const {
  std::visit(Reader{*this, field, model}, member);
}

Json ModelKey::to_json(const ModelSpec& model) const {
  return std::visit([&](auto pointer) { return json_of(model.*pointer); }, member);
}

void ModelKey::from_json(const Json& json, ModelSpec& model) const {
  std::visit([&](auto pointer) { read_json(json, model.*pointer); }, member);
}

std::string ModelKey::text(const ModelSpec& model) const {
  const Json json = to_json(model);
  return json.is_string() ? json.get<std::string>() : json.dump();
}

bool ModelKey::equal(const ModelSpec& a, const ModelSpec& b) const {
  return std::visit([&](auto pointer) { return a.*pointer == b.*pointer; }, member);
}

void ModelKey::copy(const ModelSpec& from, ModelSpec& to) const {
  std::visit([&](auto pointer) { to.*pointer = from.*pointer; }, member);
}

const std::vector<ModelKey>& all_model_keys() {
  using M = ModelSpec;
  static const auto& keys = *new std::vector<ModelKey>{
      {"kv_heads", &M::kv_heads, 1, kMostHeads},
      {"head_size", &M::head_size, 1, kMostHeads},
      {"positions", &M::positions, 1, kMostCount},
      {"unused_positions", &M::unused_positions, 0, 1000},
      {"attention_window", &M::attention_window, 0, kMostCount},
      {"window_pattern", &M::window_pattern},
      {"norm", &M::norm},
      {"norm_place", &M::norm_place},
      {"parallel_residual", &M::parallel_residual},
      {"shared_norm", &M::shared_norm},
      {"position_embedding", &M::position_embedding},
      {"rotary_base", &M::rotary_base, 1, 1e12},
      {"local_rotary_base", &M::local_rotary_base, 0, 1e12},
      {"rotary_fraction", &M::rotary_fraction, 0, 1},
      {"rotary_interleaved", &M::rotary_interleaved},
      {"rotary_scaling", &M::rotary_scaling},
      {"rotary_factor", &M::rotary_factor, 1, 1e6},
      {"rotary_original_positions", &M::rotary_original_positions, 1, kMostCount},
      {"rotary_low_frequency", &M::rotary_low_frequency, 1e-6, 1e6},
      {"rotary_high_frequency", &M::rotary_high_frequency, 1e-6, 1e6},
      {"rotary_attention_factor", &M::rotary_attention_factor, 0, 1e6},
      {"rotary_fast_rotations", &M::rotary_fast_rotations, 1e-6, 1e6},
      {"rotary_slow_rotations", &M::rotary_slow_rotations, 1e-6, 1e6},
      {"rotary_whole_limits", &M::rotary_whole_limits},
      {"qk_norm", &M::qk_norm},
      {"qkv_bias", &M::qkv_bias},
      {"proj_bias", &M::proj_bias},
      {"attention_scale", &M::attention_scale, 0, 1e6},
      {"attention_soft_cap", &M::attention_soft_cap, 0, 1e6},
      {"gated_mlp", &M::gated_mlp},
      {"activation", &M::activation},
      {"mlp_bias", &M::mlp_bias},
      {"embedding_scale", &M::embedding_scale, 0, 1e6},
      {"residual_scale", &M::residual_scale, 0, 1e6},
      {"logit_scale", &M::logit_scale, 1e-9, 1e6},
      {"logit_soft_cap", &M::logit_soft_cap, 0, 1e6},
  };
  return keys;
}

const ModelKey* find_model_key(const std::string& name) {
  for (const ModelKey& key : all_model_keys())
    if (key.name == name) return &key;
  return nullptr;
}

}  // namespace sailor
