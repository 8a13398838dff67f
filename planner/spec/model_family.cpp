#include "planner/spec/model_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/spec/families/families.h"
#include "planner/spec/families/llama_like.h"
#include "planner/spec/model_directory.h"

namespace sailor {

#define SAILOR_DECLARE(name) ModelFamily name##_family();
SAILOR_MODEL_FAMILIES(SAILOR_DECLARE)
#undef SAILOR_DECLARE

namespace {

ModelFamily any_decoder() {
  ModelFamily family;
  family.name = kAnyDecoder;
  family.choices = llama_choices();
  for (const ModelKey& key : all_model_keys()) family.keys.push_back(key.name);
  return family;
}

// The model as one of the family, if its config.json says all of it.
std::optional<ModelSpec> as_one_of(const ModelFamily& family, ModelSpec model) {
  model.family = family.name;
  model.from.clear();
  ModelSpec read;
  try {
    read = parse_model_config(to_model_config(model, "float32"), "config.json");
  } catch (const InputError&) {
    return std::nullopt;
  }
  const bool same_choices =
      std::all_of(all_model_keys().begin(), all_model_keys().end(), [&](const ModelKey& key) {
        return key.equal(read, model) ||
               (key.name == "kv_heads" && read.key_value_heads() == model.key_value_heads()) ||
               (key.name == "positions" && read.position_rows() == model.position_rows()) ||
               (key.name == "window_pattern" && model.attention_window == 0) ||
               (key.name == "embedding_scale" && read.token_scale() == model.token_scale()) ||
               (key.name == "attention_scale" && read.score_scale() == model.score_scale()) ||
               (key.name == "head_size" && read.head_width() == model.head_width()) ||
               (key.name == "rotary_original_positions" &&
                read.original_positions() == model.original_positions());
      });
  if (!same_choices || read.norm_epsilon != model.norm_epsilon ||
      read.tied_embeddings != model.tied_embeddings)
    return std::nullopt;
  return model;
}

// Empty names for a model that no family can store.
TensorNames stored_names_of(const ModelSpec& model) {
  if (model.family != kAnyDecoder) return model_family(model.family).tensors(model);
  for (const ModelFamily& family : model_families()) {
    if (const auto stored = as_one_of(family, model)) return family.tensors(*stored);
  }
  TensorNames names;
  names.qkv = names.up = {""};
  names.qkv_rows = QkvRows::by_head;
  return names;
}

std::optional<ModelProblem> find_rotary_problem(const ModelSpec& m) {
  const int rotated = m.rotated_elements();
  if (rotated < 2 || rotated % 2 != 0) {
    if (m.rotary_fraction != 1)
      return ModelProblem{
          "rotary_fraction",
          fmt::format("{} of heads of {} elements is {}; it must be an even number, at least 2",
                      m.rotary_fraction, m.head_width(), rotated)};
    if (m.head_size > 0) return ModelProblem{"head_size", "rotary positions need heads of even size"};
    return ModelProblem{
        "heads", fmt::format("rotary positions need heads of even size, and hidden {} / heads {} is odd",
                             m.hidden, m.heads)};
  }
  if (m.rotary_scaling == RotaryScaling::none && m.rotary_factor != 1)
    return ModelProblem{"rotary_factor", "has no effect without rotary_scaling; leave it out"};
  if (m.rotary_scaling == RotaryScaling::dynamic && rotated < 4)
    return ModelProblem{"rotary_scaling", "dynamic scaling needs at least 4 rotated elements of a head"};
  if (m.rotary_scaling == RotaryScaling::llama3 && m.rotary_low_frequency >= m.rotary_high_frequency)
    return ModelProblem{"rotary_low_frequency", fmt::format("{} must be below rotary_high_frequency, {}",
                                                            m.rotary_low_frequency, m.rotary_high_frequency)};
  return std::nullopt;
}

}  // namespace

const std::vector<ModelFamily>& model_families() {
#define SAILOR_CALL(name) name##_family(),
  // Never destroyed: writes of checkpoints that a disk holds up may look families up while the process ends.
  static const auto& all = *new std::vector<ModelFamily>{SAILOR_MODEL_FAMILIES(SAILOR_CALL)};
#undef SAILOR_CALL
  return all;
}

const ModelFamily* find_family(const std::string& name) {
  static const auto& any = *new ModelFamily(any_decoder());
  for (const ModelFamily& family : model_families()) {
    if (family.name == name) return &family;
  }
  return name == any.name ? &any : nullptr;
}

std::vector<std::string> known_families() {
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families()) names.push_back(family.name);
  names.emplace_back(kAnyDecoder);
  return names;
}

const ModelFamily& model_family(const std::string& name) {
  if (const ModelFamily* family = find_family(name)) return *family;
  throw InputError(fmt::format("model.family: the trainer does not know \"{}\" (known: {})", name,
                               fmt::join(known_families(), ", ")));
}

bool ModelFamily::has(const std::string& key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void set_family(ModelSpec& model, const std::string& name) {
  if (const ModelFamily* family = find_family(name)) {
    for (const ModelKey& key : all_model_keys()) key.copy(family->choices, model);
  }
  model.family = name;
}

ModelSpec stored_as(const ModelSpec& model) {
  if (model.family != kAnyDecoder) {
    model_family(model.family);
    return model;
  }
  for (const ModelFamily& family : model_families()) {
    if (const std::optional<ModelSpec> stored = as_one_of(family, model)) return *stored;
  }
  throw InputError(
      "model: no family's model directory can express this combination of choices, so the model cannot be "
      "exported; checkpoints hold it all the same");
}

std::optional<ModelProblem> find_problem(const ModelSpec& m) {
  if (m.head_size == 0 && m.hidden % m.heads != 0)
    return ModelProblem{"heads",
                        fmt::format("hidden ({}) must be a multiple of heads ({})", m.hidden, m.heads)};
  if (m.heads % m.key_value_heads() != 0)
    return ModelProblem{"kv_heads", fmt::format("heads ({}) must be a multiple of kv_heads ({})", m.heads,
                                                m.key_value_heads())};
  if (find_family(m.family) == nullptr) return std::nullopt;
  if (m.learned_positions() && m.position_rows() < m.sequence)
    return ModelProblem{"positions", fmt::format("positions ({}) must be at least sequence ({})",
                                                 m.position_rows(), m.sequence)};
  if (m.shared_norm && (!m.parallel_residual || m.norm_place != NormPlace::before))
    return ModelProblem{"shared_norm",
                        "attention and MLP share a norm only with parallel_residual and norm_place: before"};
  return m.learned_positions() ? std::nullopt : find_rotary_problem(m);
}

std::vector<ParameterSpec> layer_parameters(const ModelSpec& model, int layer, int64_t padded_vocabulary) {
  return decoder_parameters(model, stored_names_of(model), layer, padded_vocabulary);
}

std::vector<ParameterSpec> list_parameters(const ModelSpec& model, int64_t padded_vocabulary) {
  const TensorNames names = stored_names_of(model);
  std::vector<ParameterSpec> parameters;
  for (int layer = 0; layer < model.num_all_layers(); ++layer) {
    for (ParameterSpec& parameter : decoder_parameters(model, names, layer, padded_vocabulary)) {
      if (!parameter.tied_copy) parameters.push_back(std::move(parameter));
    }
  }
  return parameters;
}

bool is_linear_weight(const ParameterSpec& parameter, const ModelSpec& model) {
  return parameter.columns > 0 && parameter.layer > 0 && parameter.layer <= model.layers;
}

FusedRows fused_rows(const ParameterSpec& weight, const ModelSpec& model) {
  FusedRows rows{weight.stored.groups, {}};
  for (const StoredPiece& piece : weight.stored.pieces) rows.parts.push_back(piece.rows);
  if (rows.parts.size() == 1 && weight.name == fmt::format("{}.qkv.weight", weight.layer)) {
    const int64_t size = model.head_width(), groups = model.key_value_heads();
    rows = {groups, {size * model.heads / groups, size, size}};
  }
  return rows;
}

}  // namespace sailor
