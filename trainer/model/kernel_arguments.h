// Tensors as arguments of trainer/kernels.
#pragma once

#include <ATen/ATen.h>

#include "trainer/kernels/place.h"

namespace sailor {

// Throws std::logic_error for a type that kernels do not compute with.
kernels::Element element_of(const at::Tensor& tensor);
// Where kernels run with `tensor`: on its device, on the calling thread's stream.
kernels::Place place_of_kernels(const at::Tensor& tensor);
// The type in which kernels compute with elements of `tensor`, and keep statistics of it.
at::ScalarType computed_type(const at::Tensor& tensor);

}  // namespace sailor
