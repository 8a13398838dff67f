#include "trainer/parallel/gradient_buffer.h"

#include <ATen/core/grad_mode.h>

#include <stdexcept>

namespace sailor {

at::ScalarType gradient_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

GradientBuffer::GradientBuffer(std::vector<Parameter*> order, BucketPlaces places)
    : order_(std::move(order)), offsets_(std::move(places.offsets)) {
  int64_t elements = 0;
  at::ScalarType type = at::kFloat;
  at::Device place = at::kCPU;
  const bool in_line = offsets_.empty();
  for (const Parameter* parameter : order_) {
    if (parameter == order_.front()) {
      type = parameter->value.scalar_type();
      place = parameter->value.device();
    }
    if (parameter->value.scalar_type() != type)
      throw std::logic_error(parameter->name + ": parameters of one rank have several types");
    if (in_line) offsets_.push_back(elements);
    elements += parameter->value.numel();
  }
  if (!in_line) elements = places.elements;
  same_type_ = gradient_type(type) == type;
  flat_ = at::zeros({elements}, at::TensorOptions(place).dtype(gradient_type(type)));
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const at::Tensor& value = order_[i]->value;
    views_.push_back(flat_.narrow(0, offsets_[i], value.numel()).view(value.sizes()));
  }
}

void GradientBuffer::begin_iteration(double loss_scale) {
  if (same_type_ && loss_scale != 1 && !order_.empty())
    throw std::logic_error("gradients of the buffer's type are scaled");
  in_place_ = loss_scale == 1;
  factor_ = 1 / loss_scale;
  flat_.zero_();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    at::Tensor& gradient = order_[i]->value.mutable_grad();
    gradient = in_place_ ? views_[i] : at::Tensor();
  }
}

void GradientBuffer::clear(const std::vector<std::size_t>& parameters) {
  for (const std::size_t i : parameters) views_[i].zero_();
}

void GradientBuffer::collect(const std::vector<std::size_t>& parameters) {
  if (in_place_) return;
  const at::NoGradGuard no_graph;
  for (const std::size_t i : parameters) {
    at::Tensor& gradient = order_[i]->value.mutable_grad();
    if (gradient.defined()) views_[i].add_(gradient, factor_);
    gradient.reset();
  }
}

}  // namespace sailor
