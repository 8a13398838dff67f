#include "trainer/model/torch_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>
#include <string>

#include "trainer/model/torch_compat.h"

namespace sailor {
namespace {

// libtorch identifies a stream that it did not make by its handle.
c10::Stream from_outside(const Device& device) {
  return c10::Stream(c10::Stream::UNSAFE, place_of(device),
                     reinterpret_cast<c10::StreamId>(device.compute()));
}

}  // namespace

std::string set_arithmetic() {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(true);
  context.setAllowTF32CuDNN(true);
  context.setAllowFP16ReductionCuBLAS(false);
  allow_bf16_sums(context, false);
  return "32-bit products in TF32, sums of 16-bit products in 32 bit";
}

at::Device place_of(const Device& device) {
  return device.gpu() < 0 ? at::Device(at::kCPU)
                          : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.gpu()));
}

ComputeOn::ComputeOn(const Device& device) {
  if (device.gpu() < 0) return;
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  guard.setDevice(place_of(device));
  before_ = guard.exchangeStream(from_outside(device));
}

ComputeOn::~ComputeOn() {
  if (before_) c10::impl::VirtualGuardImpl(at::kCUDA).exchangeStream(*before_);
}

Stream stream_of(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return nullptr;
  const c10::StreamId id =
      c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device()).id();
  // libtorch's own streams have odd ones, and its default stream has 0.
  if (id == 0 || id % 2 != 0) throw std::logic_error("a communication on a device outside of ComputeOn");
  return reinterpret_cast<Stream>(id);
}

}  // namespace sailor
