// Converts between a parameter and its tensors in model directories: shapes, types, contents.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/model/parameter.h"

namespace sailor {

// Names of the tensors of `parameter`, in the order of its pieces, each once.
std::vector<std::string> stored_names(const ParameterSpec& parameter);
std::vector<int64_t> stored_shape(const ParameterSpec& parameter, const std::string& tensor);

// The stored tensors, contiguous, made from the parameter (or its gradient), with or without rows of padding.
std::vector<std::pair<std::string, at::Tensor>> stored_tensors(const ParameterSpec& parameter,
                                                               const at::Tensor& whole);

// The element type of a stored type. Throws InputError at `file` for one that is invalid for weights.
at::ScalarType stored_scalar_type(const std::string& dtype, const std::string& file);
std::string stored_dtype(at::ScalarType type);  // throws std::logic_error

}  // namespace sailor
