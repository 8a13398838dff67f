// A model family: a name for choices of a decoder (ModelSpec) that belong together, and the form of its model
// directories. A family is a file in planner/spec/families/ that defines one ModelFamily, and a line in
// families/families.h; the trainer has no code for it. Models of families that are not here can be planned
// once they are measured, but not trained.
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
  std::string name;                 // in job specs
  ModelSpec choices;                // of its models unless a job spec or config.json says otherwise
  std::vector<std::string> keys{};  // of ModelKey: those that a job spec may set

  TensorNames (*tensors)(const ModelSpec& model) = nullptr;
  ConfigForm config{};
  std::string stored_prefix{};                // of tensor names: some files were written without it
  std::vector<std::string> stored_buffers{};  // suffixes of stored tensors that are not weights

  bool has(const std::string& key) const;
};

// The family of models that a job spec describes without one. It has every key, and no model directories of
// its own: stored_as() finds a family that has them.
inline constexpr const char* kAnyDecoder = "decoder";

// In the order of families.h, without kAnyDecoder. They live forever.
const std::vector<ModelFamily>& model_families();
const ModelFamily* find_family(const std::string& name);   // kAnyDecoder too; nullptr if unknown
const ModelFamily& model_family(const std::string& name);  // throws InputError listing the known ones
std::vector<std::string> known_families();                 // names, kAnyDecoder last

// Makes `model` one of this family, with all of its choices and no others; sizes stay. An unknown family only
// sets the name.
void set_family(ModelSpec& model, const std::string& name);
// The family in whose model directories the model is stored, and the model as one of it: its own, or for
// kAnyDecoder the first that can express the model. Throws InputError if none can.
ModelSpec stored_as(const ModelSpec& model);

// A mismatch of settings, such as heads that do not divide hidden; nothing when the model can be built.
std::optional<ModelProblem> find_problem(const ModelSpec& model);

// The parameters of layer `layer`, in order. Throws InputError for an unknown family. Of a model that no
// family can store, the names of stored tensors are empty.
std::vector<ParameterSpec> layer_parameters(const ModelSpec& model, int layer, int64_t padded_vocabulary);
// All parameters of the model in layer order, each once.
std::vector<ParameterSpec> list_parameters(const ModelSpec& model, int64_t padded_vocabulary);
// The weight of a linear layer in a block: a matrix, and neither an embedding nor the head.
bool is_linear_weight(const ParameterSpec& parameter, const ModelSpec& model);

// The rows of a weight that several linear layers share, such as queries, keys and values: `groups` times a
// range of rows of every layer in turn, whether or not model directories have them in one tensor.
struct FusedRows {
  int64_t groups = 1;
  std::vector<int64_t> parts;  // rows of a group
};
FusedRows fused_rows(const ParameterSpec& weight, const ModelSpec& model);

}  // namespace sailor
