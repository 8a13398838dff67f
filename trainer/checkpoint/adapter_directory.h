// Writes adapters (LoRA) as a directory that the PEFT library loads: adapter_config.json and
// adapter_model.safetensors; and merges them into the weights of their base model.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>

#include "planner/spec/job_spec.h"
#include "trainer/model/parameter.h"

namespace sailor {

// `whole` returns the unsharded values of an adapter. It is called for all of them once, in the order of
// trained_parameters(). Weights are stored as `type`. `model.from` is named as the base model. The directory
// is created; files of those names in it are replaced atomically. Throws std::runtime_error when writing
// fails.
void export_adapters(const std::string& directory, const ModelSpec& model, const LoraSpec& lora,
                     at::ScalarType type, const std::function<at::Tensor(const ParameterSpec&)>& whole);

// The unsharded parameter `weight` of the base model with its adapters merged into it, in the type of
// `value`.
at::Tensor with_merged_adapters(const ParameterSpec& weight, const at::Tensor& value, const ModelSpec& model,
                                const LoraSpec& lora,
                                const std::function<at::Tensor(const ParameterSpec&)>& whole);

}  // namespace sailor
