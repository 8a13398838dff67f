#include "planner/spec/model_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "planner/spec/families/families.h"

namespace sailor {

#define SAILOR_DECLARE(name) ModelFamily name##_family();
SAILOR_MODEL_FAMILIES(SAILOR_DECLARE)
#undef SAILOR_DECLARE

const std::vector<ModelFamily>& model_families() {
#define SAILOR_CALL(name) name##_family(),
  // Never destroyed: writes of checkpoints that a disk holds up may look families up while the process ends.
  static const auto& all = *new std::vector<ModelFamily>{SAILOR_MODEL_FAMILIES(SAILOR_CALL)};
#undef SAILOR_CALL
  return all;
}

const ModelFamily* find_family(const std::string& name) {
  for (const ModelFamily& family : model_families()) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

const ModelFamily& model_family(const std::string& name) {
  if (const ModelFamily* family = find_family(name)) return *family;
  std::vector<std::string> known;
  for (const ModelFamily& family : model_families()) known.push_back(family.name);
  throw InputError(fmt::format("model.family: the trainer does not know \"{}\" (known: {})", name,
                               fmt::join(known, ", ")));
}

const ModelKey* ModelFamily::find_key(const std::string& key) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const ModelKey& k) { return k.name == key; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<ModelKey> all_model_keys() {
  std::vector<ModelKey> all;
  for (const ModelFamily& family : model_families()) {
    std::copy_if(family.keys.begin(), family.keys.end(), std::back_inserter(all), [&](const ModelKey& key) {
      return std::none_of(all.begin(), all.end(), [&](const ModelKey& k) { return k.name == key.name; });
    });
  }
  return all;
}

std::optional<ModelProblem> find_problem(const ModelSpec& model) {
  if (model.hidden % model.heads != 0)
    return ModelProblem{
        "heads", fmt::format("hidden ({}) must be a multiple of heads ({})", model.hidden, model.heads)};
  if (model.heads % model.key_value_heads() != 0)
    return ModelProblem{"kv_heads", fmt::format("heads ({}) must be a multiple of kv_heads ({})", model.heads,
                                                model.key_value_heads())};
  if (model.position_rows() < model.sequence)
    return ModelProblem{"positions", fmt::format("positions ({}) must be at least sequence ({})",
                                                 model.position_rows(), model.sequence)};
  const ModelFamily* family = find_family(model.family);
  return family && family->problem ? family->problem(model) : std::nullopt;
}

std::vector<ParameterSpec> layer_parameters(const ModelSpec& model, int layer, int64_t padded_vocabulary) {
  LayerParameters list(model, layer, padded_vocabulary);
  model_family(model.family).parameters(list);
  return list.take();
}

std::vector<ParameterSpec> list_parameters(const ModelSpec& model, int64_t padded_vocabulary) {
  std::vector<ParameterSpec> parameters;
  for (int layer = 0; layer < model.num_all_layers(); ++layer) {
    for (ParameterSpec& parameter : layer_parameters(model, layer, padded_vocabulary)) {
      if (!parameter.tied_copy) parameters.push_back(std::move(parameter));
    }
  }
  return parameters;
}

}  // namespace sailor
