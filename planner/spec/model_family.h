// A model family in one place: how it differs from other transformers as far as keys of a job spec, time,
// memory, parameters and model directories depend on it. A family is a file in planner/spec/families/, which
// defines one ModelFamily, a file of the same name in trainer/model/, which builds the layers, and a line in
// families/families.h. A family that is not there can be planned once it is measured, and is not trained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/spec/layer_parameters.h"
#include "planner/spec/model_config.h"
#include "planner/spec/model_key.h"

namespace sailor {

// What cannot be about a key of `model:`.
struct ModelProblem {
  std::string key;  // `heads`
  std::string text;
};

struct ModelFamily {
  std::string name;  // in job specs
  std::vector<ModelKey> keys{};

  bool gated_mlp = false;
  bool learned_positions = false;
  bool biases = false;       // linear layers have biases, norms have a shift
  bool qkv_biases = false;   // the projections to queries, keys and values too
  int unused_positions = 0;  // rows of the position embedding before that of the first token
  std::optional<ModelProblem> (*problem)(const ModelSpec& model) = nullptr;  // beyond those of all families
  void (*parameters)(LayerParameters& layer) = nullptr;
  // Adds the arguments of Megatron-LM for what the members above do not say. Returns what Megatron-LM cannot
  // express ("its model ..."), or nothing.
  std::string (*add_megatron_flags)(const ModelSpec& model, std::vector<std::string>& flags) = nullptr;

  ConfigForm config;
  std::string stored_prefix{};                // of tensors' names: some files were written without it
  std::vector<std::string> stored_buffers{};  // stored tensors that are no weights end in one of these

  const ModelKey* find_key(const std::string& key) const;  // nullptr when it has no such key
  bool has(const std::string& key) const { return find_key(key) != nullptr; }
};

// In the order of families.h. They live for ever.
const std::vector<ModelFamily>& model_families();
const ModelFamily* find_family(const std::string& name);   // nullptr when the family is not known
const ModelFamily& model_family(const std::string& name);  // throws InputError listing the known ones
std::vector<ModelKey> all_model_keys();                    // of all families, each once

// Heads that do not divide what they must, and the like; nothing when the model can be built. Of a family
// that is not known, what all families have in common.
std::optional<ModelProblem> find_problem(const ModelSpec& model);

// The parameters of layer `layer`, as one rank that holds it has them, in order. Throws InputError for a
// family that is not known.
std::vector<ParameterSpec> layer_parameters(const ModelSpec& model, int layer, int64_t padded_vocabulary);
// All parameters of the model in the order of layers, each once.
std::vector<ParameterSpec> list_parameters(const ModelSpec& model, int64_t padded_vocabulary);

}  // namespace sailor
