// libtorch's view of a rank's device: the location of its tensors, and the stream of their computation.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <exception>
#include <optional>
#include <string>

#include "trainer/comm/device.h"

namespace sailor {

at::Device place_of(const Device& device);

// During its lifetime the calling thread, which uses a trainer, computes on the device's compute stream. The
// backward follows the streams of the forward. Does nothing on processors.
class ComputeOn {
 public:
  explicit ComputeOn(const Device& device);
  ~ComputeOn();
  ComputeOn(const ComputeOn&) = delete;
  ComputeOn& operator=(const ComputeOn&) = delete;

 private:
  std::optional<c10::Stream> before_;
};

// How libtorch multiplies on a GPU, in this process: its defaults differ between releases. 32-bit products
// use TF32 where the GPU has it, which is the rate that the catalog has. Sums of 16-bit products are in 32
// bit. Returns it in words.
std::string set_arithmetic();
// From now on libtorch uses only operations, in this process, that give the same bits for the same operands;
// one that has no such form throws. cuBLAS needs set_deterministic_environment(), too.
void use_deterministic_algorithms();

// Zeros, as `like` in all else, in host memory that the device computes on as on its own, at the rate of the
// link between them.
at::Tensor zeros_on_host(const at::Tensor& like, Device& device);
// Copies the memory of a tensor there, and frees it on the device.
void move_to_host(c10::StorageImpl& storage, Device& device);

// The failure of a device that `error` reports: one of libtorch's, or a DeviceFailure. Nothing if it is
// another error, or one of the program that other devices would have, too.
std::optional<DeviceFailure> device_failure(const std::exception& error);

// The stream on which the calling thread computes with `tensor`, for communication between its computations.
// Null for tensors in host memory. Requires ComputeOn, here or where the backward began.
Stream stream_of(const at::Tensor& tensor);

}  // namespace sailor
