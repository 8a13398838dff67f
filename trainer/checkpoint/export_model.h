// Writes a model directory that the Hugging Face libraries read: config.json and model.safetensors.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>

#include "planner/spec/job_spec.h"
#include "trainer/model/parameter.h"

namespace sailor {

// `whole` gives the values of a parameter over all ranks of a TP group, rows of padding included or not. It
// is asked for every parameter of the model once, in the order of list_parameters(), and only one is held at
// a time. Weights are stored as `type`. The directory is made; files of those names in it are replaced, each
// as a whole. Throws InputError when the family cannot be exported, std::runtime_error when writing fails.
void export_model(const std::string& directory, const ModelSpec& model, at::ScalarType type,
                  const std::function<at::Tensor(const ParameterSpec&)>& whole);

}  // namespace sailor
