// Model families by name. A family is one file in this directory, and one line in registry.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/model/layer.h"

namespace sailor {

struct ModelFamily {
  std::string name;
  // Throws InputError when the family cannot be built with this shape or split over `tp` GPUs.
  void (*check)(const ModelSpec& model, int tp);
  // Layer `index` (0 = embedding, 1..layers = blocks, layers + 1 = norm and head) of the model.
  std::unique_ptr<Layer> (*build)(const LayerContext& context, int index);
  // Of the names of stored tensors: some files were written without it.
  std::string stored_prefix;
  // Stored tensors that are no weights of the model end in one of these.
  std::vector<std::string> stored_buffers;
};

const ModelFamily& model_family(const std::string& name);  // throws InputError listing the known ones
std::vector<std::string> model_family_names();

// What every family needs of a shape: heads, key and value heads and MLP divide by `tp`.
void check_split(const ModelSpec& model, int tp);

// All parameters of the model in the order of layers, each once.
std::vector<ParameterSpec> list_parameters(const ModelSpec& model, int64_t padded_vocabulary);

// vocabulary rounded up to a multiple of every TP degree in `tps`.
int64_t padded_vocabulary(int vocabulary, const std::vector<int>& tps);
// Of parameters, activations and messages.
at::ScalarType scalar_type(Precision precision);
ElementType element_type(at::ScalarType type);

}  // namespace sailor
