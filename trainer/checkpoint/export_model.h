// Writes a Hugging Face model directory: config.json and model.safetensors.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>

#include "planner/spec/job_spec.h"
#include "trainer/model/parameter.h"

namespace sailor {

// `whole` returns the unsharded values of a parameter, with or without rows of padding. It is called for
// every parameter of the model once, in the order of list_parameters(), and only one is held at a time.
// Weights are stored as `type`. The directory is created; files of those names in it are replaced atomically.
// Throws InputError when the family cannot be exported, std::runtime_error when writing fails.
void export_model(const std::string& directory, const ModelSpec& model, at::ScalarType type,
                  const std::function<at::Tensor(const ParameterSpec&)>& whole);

}  // namespace sailor
