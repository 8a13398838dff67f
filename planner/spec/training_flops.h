// Floating-point operations per token of what a job trains: all parameters of its model, or adapters (LoRA).
//
// Of what is trained this is training_flops_per_token() (transformer_shape.h): 6 per parameter, forward,
// gradient of the input and gradient of the weights. Frozen weights have no gradients: 4 per parameter. Pure.
#pragma once

#include <optional>

#include "planner/spec/lora_spec.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {

// `shape` is the model's; 0 for the embedding. Throws InputError for an unknown family.
double layer_flops_per_token(const TransformerShape& shape, const ModelSpec& model,
                             const std::optional<LoraSpec>& lora, int layer);
double training_flops_per_token(const ModelSpec& model, const std::optional<LoraSpec>& lora);

}  // namespace sailor
