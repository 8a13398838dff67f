// Between a parameter and the tensors that model directories store it as: shapes, types, contents.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/model/parameter.h"

namespace sailor {

// Of the tensors that `parameter` is stored as, in the order of its pieces and each once.
std::vector<std::string> stored_names(const ParameterSpec& parameter);
std::vector<int64_t> stored_shape(const ParameterSpec& parameter, const std::string& tensor);

// The stored tensors, contiguous, made from the parameter (or its gradient), whose rows of padding may be
// there.
std::vector<std::pair<std::string, at::Tensor>> stored_tensors(const ParameterSpec& parameter,
                                                               const at::Tensor& whole);

// The element type of a stored type. Throws InputError at `file` for one that weights cannot have.
at::ScalarType stored_scalar_type(const std::string& dtype, const std::string& file);
std::string stored_dtype(at::ScalarType type);  // throws std::logic_error

}  // namespace sailor
