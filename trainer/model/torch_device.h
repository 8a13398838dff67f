// A rank's device as libtorch sees it: where its tensors are, and on which stream they are computed.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <optional>

#include "trainer/comm/device.h"

namespace sailor {

at::Device place_of(const Device& device);

// Lets the calling thread compute on the device's compute stream while it lives: on the thread that a trainer
// is used from. The backward follows the streams of the forward. Nothing on processors.
class ComputeOn {
 public:
  explicit ComputeOn(const Device& device);
  ~ComputeOn();
  ComputeOn(const ComputeOn&) = delete;
  ComputeOn& operator=(const ComputeOn&) = delete;

 private:
  std::optional<c10::Stream> before_;
};

// The stream that the calling thread computes on where `tensor` is: for communications that come between its
// computations. Null for tensors in the host's memory. Requires ComputeOn, here or where the backward began.
Stream stream_of(const at::Tensor& tensor);

}  // namespace sailor
