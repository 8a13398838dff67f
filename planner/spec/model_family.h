// A model family in one place: its keys of a job spec, and the properties that determine time, memory,
// parameters and model directories. A family consists of a file in planner/spec/families/, which defines one
// ModelFamily, a file of the same name in trainer/model/, which builds the layers, and a line in
// families/families.h. Other families can be planned once they are measured, but not trained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/spec/layer_parameters.h"
#include "planner/spec/model_config.h"
#include "planner/spec/model_key.h"

namespace sailor {

// A problem with the value of a key of `model:`.
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
  bool qkv_biases = false;   // the projections to queries, keys and values have biases too
  int unused_positions = 0;  // rows of the position embedding before the first token's
  // problems beyond those of all families
  std::optional<ModelProblem> (*problem)(const ModelSpec& model) = nullptr;
  void (*parameters)(LayerParameters& layer) = nullptr;
  // Adds the Megatron-LM arguments that the members above do not cover. Returns what Megatron-LM cannot
  // express ("its model ..."), or nothing.
  std::string (*add_megatron_flags)(const ModelSpec& model, std::vector<std::string>& flags) = nullptr;

  ConfigForm config;
  std::string stored_prefix{};                // of tensor names: some files were written without it
  std::vector<std::string> stored_buffers{};  // suffixes of stored tensors that are not weights

  const ModelKey* find_key(const std::string& key) const;  // nullptr if it has no such key
  bool has(const std::string& key) const { return find_key(key) != nullptr; }
};

// In the order of families.h. They live forever.
const std::vector<ModelFamily>& model_families();
const ModelFamily* find_family(const std::string& name);   // nullptr if unknown
const ModelFamily& model_family(const std::string& name);  // throws InputError listing the known ones
std::vector<ModelKey> all_model_keys();                    // of all families, each once

// A mismatch of settings, such as heads that do not divide hidden; nothing when the model can be built. For
// an unknown family, checks what all families have in common.
std::optional<ModelProblem> find_problem(const ModelSpec& model);

// The parameters of layer `layer`, in order. Throws InputError for an unknown family.
std::vector<ParameterSpec> layer_parameters(const ModelSpec& model, int layer, int64_t padded_vocabulary);
// All parameters of the model in layer order, each once.
std::vector<ParameterSpec> list_parameters(const ModelSpec& model, int64_t padded_vocabulary);

}  // namespace sailor
