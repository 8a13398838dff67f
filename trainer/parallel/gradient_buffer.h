// The buffer in which the gradients of one rank's parameters are accumulated over the microbatches of an
// iteration: one flat buffer, in fp32 even for 16-bit parameters (fp64 for fp64 ones), in an order chosen by
// the caller, so that what is reduced together is contiguous. Parameters may share memory if the caller takes
// the gradients of one before the backward reaches another (clear()).
//
// Parameters have their part of it as their gradient, to which the backward adds in place. Where the loss is
// scaled they get their own gradient, which is added to the buffer after every layer, divided by the scale:
// what the buffer has is never scaled. One thread per object.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/model/layer.h"
#include "trainer/parallel/gradient_rounds.h"

namespace sailor {

// The type in which gradients of parameters of `type` are accumulated and reduced.
at::ScalarType gradient_type(at::ScalarType type);

class GradientBuffer {
 public:
  // `order`: every parameter once. They outlive the object. `places` of these parameters: one behind the
  // other if it is empty. Throws std::logic_error for several types.
  explicit GradientBuffer(std::vector<Parameter*> order, BucketPlaces places = {});

  const std::vector<Parameter*>& order() const { return order_; }
  // For order()[i]: its offset in flat(), and its gradient in the shape of the parameter.
  int64_t offset(std::size_t i) const { return offsets_[i]; }
  const std::vector<int64_t>& offsets() const { return offsets_; }
  const at::Tensor& view(std::size_t i) const { return views_[i]; }
  const at::Tensor& flat() const { return flat_; }

  // Before the first backward of an iteration, whose loss is multiplied by `loss_scale`: clears the buffer.
  // Its content stays readable until then. Only gradients in another type than the buffer's can be scaled
  // (throws std::logic_error).
  void begin_iteration(double loss_scale = 1);
  // Zero gradients of these parameters.
  void clear(const std::vector<std::size_t>& parameters);
  // After a backward that reached order()[i] for each i of `parameters`, and no other parameter.
  void collect(const std::vector<std::size_t>& parameters);

 private:
  std::vector<Parameter*> order_;
  std::vector<int64_t> offsets_;
  std::vector<at::Tensor> views_;
  at::Tensor flat_;
  bool same_type_ = true;  // as the parameters
  bool in_place_ = true;   // gradients of this iteration
  double factor_ = 1;      // of what is added
};

}  // namespace sailor
