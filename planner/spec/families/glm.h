// What GLM and GLM-4 have in common.
#pragma once

#include "planner/spec/families/llama_like.h"

namespace sailor {

// As Llama, but biases of queries, keys and values, and pairs of neighbours in the first half of every head
// are rotated.
ModelSpec glm_choices();
// Gate and up are one stored tensor.
TensorNames glm_tensors(const ModelSpec& model);
ConfigForm glm_config(const char* model_type, const char* architecture);
std::vector<std::string> glm_keys();

}  // namespace sailor
