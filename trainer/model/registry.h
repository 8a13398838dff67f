// Model families by name. A family is one file in this directory that ends in one line of registration in
// registry.cpp.
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
};

const ModelFamily& model_family(const std::string& name);  // throws InputError listing the known ones
std::vector<std::string> model_family_names();

// vocabulary rounded up to a multiple of every TP degree in `tps`.
int64_t padded_vocabulary(int vocabulary, const std::vector<int>& tps);
// fp32 and fp64; bf16 throws InputError (training in bf16 is not built yet).
at::ScalarType scalar_type(Precision precision);
ElementType element_type(at::ScalarType type);

}  // namespace sailor
