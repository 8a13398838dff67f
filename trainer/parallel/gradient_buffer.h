// Where the gradients of one rank's parameters are accumulated over the microbatches of an iteration: one
// flat buffer, in 32 bit even where the parameters have 16 (in 64 bit where they have 64), in an order that
// the caller chooses, so that what is summed together lies together.
//
// Parameters of the buffer's type have their part of it as their gradient, to which the backward adds in
// place. Those of another get a gradient of their own, which is added to the buffer after every layer. One
// thread per object.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/model/layer.h"

namespace sailor {

// The type in which gradients of parameters of `type` are accumulated and summed.
at::ScalarType gradient_type(at::ScalarType type);

class GradientBuffer {
 public:
  // `order`: every parameter once. They outlive the object. Throws std::logic_error for several types.
  explicit GradientBuffer(std::vector<Parameter*> order);

  const std::vector<Parameter*>& order() const { return order_; }
  // Of order()[i]: where it begins in flat(), and its gradient in the shape of the parameter.
  int64_t offset(std::size_t i) const { return offsets_[i]; }
  const at::Tensor& view(std::size_t i) const { return views_[i]; }
  const at::Tensor& flat() const { return flat_; }

  // Before the first backward of an iteration: clears the buffer. What it holds stays readable until then.
  void begin_iteration();
  // After a backward that reached order()[i] for each i of `parameters`, and no other parameter.
  void collect(const std::vector<std::size_t>& parameters);

 private:
  std::vector<Parameter*> order_;
  std::vector<int64_t> offsets_;
  std::vector<at::Tensor> views_;
  at::Tensor flat_;
  bool same_type_ = true;
};

}  // namespace sailor
