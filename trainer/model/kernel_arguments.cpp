#include "trainer/model/kernel_arguments.h"

#include <stdexcept>
#include <string>

#include "trainer/model/torch_device.h"

namespace sailor {

kernels::Element element_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return kernels::Element::f32;
    case at::kDouble:
      return kernels::Element::f64;
    case at::kBFloat16:
      return kernels::Element::bf16;
    case at::kHalf:
      return kernels::Element::f16;
    default:
      throw std::logic_error(std::string("kernels do not compute with ") +
                             at::toString(tensor.scalar_type()));
  }
}

kernels::Place place_of_kernels(const at::Tensor& tensor) {
  return {!tensor.device().is_cpu(), stream_of(tensor)};
}

at::ScalarType computed_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace sailor
