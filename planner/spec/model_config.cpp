#include "planner/spec/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sailor {
namespace {

constexpr int kMostSize = 100'000'000;
constexpr double kMostNumber = 1e12;
constexpr const char *kGlobal = "full_attention", *kLocal = "sliding_attention";

}  // namespace

ModelConfig::ModelConfig(const Document& document) : root_(document) {
  if (!root_.is_map()) root_.fail("must be a map, as config.json of a model directory is");
}

std::optional<Field> ModelConfig::find(const std::string& key) const {
  const DocumentNode* node = root_.node().find(key);
  if (node == nullptr || node->kind == DocumentNode::Kind::null) return std::nullopt;
  return Field(root_.document(), *node);
}

bool ModelConfig::has(const std::string& key) const {
  return root_.node().find(key) != nullptr;
}

Field ModelConfig::required(const std::string& key) const {
  if (auto field = find(key)) return *field;
  root_.fail(fmt::format("missing key \"{}\"", key));
}

int ModelConfig::count(const std::string& key) const {
  return required(key).integer<int>(1, kMostSize);
}

bool ModelConfig::flag(const std::string& key, bool otherwise) const {
  const auto field = find(key);
  return field ? field->boolean() : otherwise;
}

void ConfigMap::cannot_write(const std::string& what) const {
  throw InputError(fmt::format("model: config.json of family {} cannot express {}", model_.family, what));
}

void ConfigMap::flag(const char* key, bool ModelSpec::*member, bool otherwise) {
  if (json_)
    (*json_)[key] = model_.*member;
  else
    model_.*member = config_->flag(key, otherwise);
}

void ConfigMap::number(const char* key, double ModelSpec::*member, double otherwise, double least) {
  if (json_) {
    (*json_)[key] = model_.*member;
    return;
  }
  const auto field = config_->find(key);
  model_.*member = field ? field->number(least, kMostNumber) : otherwise;
}

void ConfigMap::optional_number(const char* key, double ModelSpec::*member, double otherwise) {
  if (json_) {
    (*json_)[key] = model_.*member > 0 ? nlohmann::ordered_json(model_.*member) : nlohmann::ordered_json();
    return;
  }
  const auto field = config_->find(key);
  model_.*member = field ? field->positive() : config_->has(key) ? 0 : otherwise;
}

void ConfigMap::only(const char* key, bool value, bool otherwise) {
  if (json_) {
    (*json_)[key] = value;
  } else if (config_->flag(key, otherwise) != value) {
    config_->find(key)
        .value_or(config_->root())
        .fail(fmt::format("the trainer has {} = {} only; choose another model", key, value));
  }
}

void ConfigMap::only_null(const char* key) {
  if (json_) return;
  if (const auto field = config_->find(key))
    field->fail("the trainer computes models of this family without it only; choose another model");
}

void ConfigMap::biases(const char* key, std::vector<bool ModelSpec::*> members, bool otherwise) {
  for (bool ModelSpec::*member : members) {
    if (json_ && model_.*member != model_.*members.front()) cannot_write("biases in some projections only");
    flag(key, member, otherwise);
  }
}

void ConfigMap::kv_heads(const char* key, int otherwise) {
  if (json_) {
    (*json_)[key] = model_.key_value_heads();
    return;
  }
  const auto heads = config_->find(key);
  model_.kv_heads = heads ? heads->integer<int>(1, kMostSize) : config_->has(key) ? 0 : otherwise;
  if (model_.heads % model_.key_value_heads() != 0)
    heads.value_or(config_->root())
        .fail(fmt::format("{} key and value heads do not divide num_attention_heads, {}",
                          model_.key_value_heads(), model_.heads));
}

void ConfigMap::head_size(const char* key, int otherwise) {
  if (json_) {
    (*json_)[key] = model_.head_width();
    return;
  }
  const auto size = config_->find(key);
  model_.head_size = size ? size->integer<int>(1, kMostSize) : config_->has(key) ? 0 : otherwise;
  // One description of the usual size.
  if (model_.hidden == model_.head_size * model_.heads) model_.head_size = 0;
}

void ConfigMap::query_scalar(const char* key, int otherwise) {
  if (!json_) {
    const auto field = config_->find(key);
    const int scalar = field ? field->integer<int>(1, kMostSize) : otherwise;
    return set_score_scale(1 / std::sqrt(static_cast<double>(scalar)));
  }
  const double scalar = 1 / (model_.score_scale() * model_.score_scale()), whole = std::round(scalar);
  if (whole < 1 || std::abs(whole - scalar) > 1e-9 * scalar)
    cannot_write(fmt::format("attention_scale {}, which is not 1 / sqrt(an integer)", model_.score_scale()));
  (*json_)[key] = static_cast<int64_t>(whole);
}

// One description of the usual scale.
void ConfigMap::set_score_scale(double scale) {
  model_.attention_scale = 0;
  if (std::abs(scale / model_.score_scale() - 1) > 1e-12) model_.attention_scale = scale;
}

void ConfigMap::score_scale(const char* key, double otherwise) {
  if (json_) {
    (*json_)[key] = model_.score_scale();
    return;
  }
  const auto field = config_->find(key);
  set_score_scale(field ? field->number(1e-9, 1e6) : otherwise);
}

void ConfigMap::no_dropout(std::initializer_list<const char*> keys) {
  if (!json_) return;
  for (const char* key : keys) (*json_)[key] = 0.0;
}

void ConfigMap::logit_divisor(const char* key) {
  if (json_) {
    (*json_)[key] = 1 / model_.logit_scale;
    return;
  }
  const auto field = config_->find(key);
  model_.logit_scale = field ? 1 / field->number(1e-6, 1e6) : 1;
}

// ---- rotary embeddings ----

void ConfigMap::read_rotary(const Field& map, const RotaryForm& form) {
  bool has_factor = false;
  double mscale = 0, mscale_all = 0;
  for (const auto& [name, value] : map.entries()) {
    if (value.node().kind == DocumentNode::Kind::null) continue;
    const auto number = [&, &value = value](double least) { return value.number(least, kMostNumber); };
    if (name == "rope_theta") {
      model_.rotary_base = number(1);
    } else if (name == "partial_rotary_factor") {
      model_.rotary_fraction = value.number(0, 1);
    } else if (name == "rope_type" || name == "type") {
      const std::vector<std::string>& words = words_of(RotaryScaling());
      const auto found = std::find(words.begin() + 1, words.end(), value.text());
      const bool plain = value.text() == "default";
      if (!plain && (found == words.end() || !form.scaling))
        value.fail_type(form.scaling ? "default, linear, dynamic, llama3 or yarn, the rotary embeddings that "
                                       "the trainer has"
                                     : "default, the rotary embeddings of this family that the trainer has");
      model_.rotary_scaling = plain ? RotaryScaling::none : static_cast<RotaryScaling>(found - words.begin());
    } else if (name == "factor") {
      model_.rotary_factor = number(1);
      has_factor = true;
    } else if (name == "original_max_position_embeddings") {
      model_.rotary_original_positions = value.integer<int>(1, kMostSize);
    } else if (name == "low_freq_factor") {
      model_.rotary_low_frequency = number(1e-6);
    } else if (name == "high_freq_factor") {
      model_.rotary_high_frequency = number(1e-6);
    } else if (name == "attention_factor") {
      model_.rotary_attention_factor = number(1e-6);
    } else if (name == "beta_fast") {
      model_.rotary_fast_rotations = number(1e-6);
    } else if (name == "beta_slow") {
      model_.rotary_slow_rotations = number(1e-6);
    } else if (name == "mscale") {
      mscale = number(0);
    } else if (name == "mscale_all_dim") {
      mscale_all = number(0);
    } else if (name == "truncate") {
      model_.rotary_whole_limits = value.boolean();
    } else {
      value.fail("the trainer does not know this setting of rotary embeddings; choose another model");
    }
  }
  if (model_.rotary_scaling == RotaryScaling::none) return;
  if (model_.rotary_scaling == RotaryScaling::yarn) {
    if (!has_factor)
      model_.rotary_factor =
          std::max(1.0, static_cast<double>(model_.position_rows()) / model_.original_positions());
    has_factor = true;
    const auto root = [&](double scale) { return 0.1 * scale * std::log(model_.rotary_factor) + 1; };
    if (model_.rotary_attention_factor == 0 && mscale > 0 && mscale_all > 0)
      model_.rotary_attention_factor = root(mscale) / root(mscale_all);
  }
  if (!has_factor) map.fail("missing key \"factor\"");
}

void ConfigMap::write_rotary(const RotaryForm& form) {
  using Json = nlohmann::ordered_json;
  const ModelSpec& m = model_;
  Json global = {{"rope_theta", m.rotary_base}};
  if (m.rotary_fraction != 1 || form.fraction != 1) global["partial_rotary_factor"] = m.rotary_fraction;
  const bool scaled = m.rotary_scaling != RotaryScaling::none;
  global["rope_type"] = scaled ? word_of(m.rotary_scaling) : "default";
  if (scaled) global["factor"] = m.rotary_factor;
  if (m.rotary_scaling == RotaryScaling::llama3) {
    global["low_freq_factor"] = m.rotary_low_frequency;
    global["high_freq_factor"] = m.rotary_high_frequency;
  } else if (m.rotary_scaling == RotaryScaling::yarn) {
    global["beta_fast"] = m.rotary_fast_rotations;
    global["beta_slow"] = m.rotary_slow_rotations;
    if (m.rotary_attention_factor > 0) global["attention_factor"] = m.rotary_attention_factor;
    if (!m.rotary_whole_limits) global["truncate"] = false;
  }
  if (m.rotary_scaling == RotaryScaling::llama3 || m.rotary_scaling == RotaryScaling::yarn)
    global["original_max_position_embeddings"] = m.original_positions();
  else if (scaled && m.rotary_original_positions > 0 && m.rotary_original_positions != m.position_rows())
    cannot_write("rotary_original_positions other than positions");
  // Where older releases look for them.
  (*json_)[form.base_key] = m.rotary_base;
  if (global.contains("partial_rotary_factor")) (*json_)[form.fraction_key] = m.rotary_fraction;
  if (form.local_base_key == nullptr) {
    (*json_)["rope_parameters"] = global;
    if (scaled) (*json_)["rope_scaling"] = global;
    return;
  }
  const double local = m.local_rotary_base > 0 ? m.local_rotary_base : m.rotary_base;
  if (scaled && m.local_rotary_base == 0) cannot_write("scaled rotary embeddings of local blocks");
  (*json_)[form.local_base_key] = local;
  (*json_)["rope_parameters"] = {{kGlobal, global},
                                 {kLocal, {{"rope_theta", local}, {"rope_type", "default"}}}};
}

void ConfigMap::rotary(const RotaryForm& form) {
  if (json_) return write_rotary(form);
  model_.rotary_base = form.base;
  model_.rotary_fraction = form.fraction;
  if (const auto base = config_->find(form.base_key)) model_.rotary_base = base->number(1, kMostNumber);
  if (const auto part = config_->find(form.fraction_key)) model_.rotary_fraction = part->number(0, 1);
  if (form.local_base_key != nullptr) {
    const auto local = config_->find(form.local_base_key);
    model_.local_rotary_base = local ? local->number(1, kMostNumber) : form.local_base;
  }
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto map = config_->find(key);
    if (!map) continue;
    if (!map->is_map()) map->fail_type("a map");
    const DocumentNode* global = map->node().find(kGlobal);
    if (form.local_base_key == nullptr || global == nullptr) {
      read_rotary(*map, form);
      continue;
    }
    if (global->kind == DocumentNode::Kind::map) read_rotary(Field(map->document(), *global), form);
    const DocumentNode* local = map->node().find(kLocal);
    if (local == nullptr || local->kind != DocumentNode::Kind::map) continue;
    for (const auto& [name, value] : Field(map->document(), *local).entries()) {
      if (name == "rope_theta") {
        model_.local_rotary_base = value.number(1, kMostNumber);
      } else if (name != "rope_type" || value.text() != "default") {
        value.fail("the trainer has plain rotary embeddings in local blocks only; choose another model");
      }
    }
  }
}

// ---- windows ----

void ConfigMap::set_pattern(const std::string& blocks) {
  if (blocks.find('L') == std::string::npos) {
    model_.attention_window = 0;  // and the family's pattern
    return;
  }
  bool usual = true;  // the family's pattern says the same
  for (size_t i = 0; i < blocks.size(); ++i)
    usual = usual && blocks[i] == model_.window_pattern[i % model_.window_pattern.size()];
  if (usual) return;
  size_t period = 1;
  const auto repeats = [&](size_t n) {
    for (size_t i = n; i < blocks.size(); ++i)
      if (blocks[i] != blocks[i - n]) return false;
    return true;
  };
  while (!repeats(period)) ++period;
  model_.window_pattern = blocks.substr(0, period);
}

void ConfigMap::write_window() {
  using Json = nlohmann::ordered_json;
  (*json_)["sliding_window"] = model_.attention_window > 0 ? Json(model_.attention_window) : Json();
}

void ConfigMap::read_window(int otherwise) {
  const auto field = config_->find("sliding_window");
  model_.attention_window = field                            ? field->integer<int>(0, kMostSize)
                            : config_->has("sliding_window") ? 0
                                                             : otherwise;
}

void ConfigMap::window(int otherwise) {
  if (!json_) return read_window(otherwise);
  if (model_.mixes_local_blocks()) cannot_write("windows in some blocks only");
  write_window();
}

void ConfigMap::read_layer_types(const std::string& pattern) {
  std::string blocks;
  const auto types = config_->find("layer_types");
  if (types) {
    for (const Field& type : types->items()) blocks += type.choice({kGlobal, kLocal}) == 0 ? 'G' : 'L';
    if (static_cast<int>(blocks.size()) != model_.layers)
      types->fail(fmt::format("describes {} blocks, the model has {}", blocks.size(), model_.layers));
  } else {
    for (int i = 0; i < model_.layers; ++i) blocks += pattern[static_cast<size_t>(i) % pattern.size()];
  }
  set_pattern(blocks);
}

void ConfigMap::write_layer_types() {
  nlohmann::ordered_json types = nlohmann::ordered_json::array();
  for (int layer = 1; layer <= model_.layers; ++layer)
    types.push_back(model_.attends_locally(layer) ? kLocal : kGlobal);
  (*json_)["layer_types"] = types;
}

void ConfigMap::windows(const std::string& pattern) {
  if (json_) {
    write_window();
    return write_layer_types();
  }
  read_window(4096);
  if (model_.attention_window == 0) return;
  std::string usual = pattern;
  if (const auto every = config_->find("sliding_window_pattern"); every && !every->is_sequence())
    usual = std::string(static_cast<size_t>(every->integer<int>(1, 1000)) - 1, 'L') + 'G';
  read_layer_types(usual);
}

void ConfigMap::late_windows() {
  if (json_) {
    (*json_)["use_sliding_window"] = model_.attention_window > 0;
    write_window();
    int first = model_.layers;
    while (first > 0 && model_.attends_locally(first)) --first;
    (*json_)["max_window_layers"] = first;
    return write_layer_types();
  }
  model_.attention_window = 0;
  if (!config_->flag("use_sliding_window", false)) return;
  read_window(4096);
  if (model_.attention_window == 0) return;
  const auto first = config_->find("max_window_layers");
  const int global = std::min(model_.layers, first ? first->integer<int>(0, kMostSize) : 28);
  read_layer_types(std::string(static_cast<size_t>(global), 'G') +
                   std::string(static_cast<size_t>(model_.layers - global), 'L'));
}

}  // namespace sailor
