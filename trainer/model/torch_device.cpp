#include "trainer/model/torch_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/model/torch_compat.h"

namespace sailor {
namespace {

// libtorch identifies a stream that it did not make by its handle.
c10::Stream from_outside(const Device& device) {
  return c10::Stream(c10::Stream::UNSAFE, place_of(device),
                     reinterpret_cast<c10::StreamId>(device.compute()));
}

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
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

void use_deterministic_algorithms() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  leave_new_tensors_unfilled(context);
}

std::optional<DeviceFailure> device_failure(const std::exception& error) {
  if (const auto* known = dynamic_cast<const DeviceFailure*>(&error)) return *known;
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  if (!of_torch) return std::nullopt;
  const std::string text = of_torch->what_without_backtrace();
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) ||
      contains_any(text, {"CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED"}))
    return DeviceFailure(text, /*out_of_memory=*/true);
  // libtorch has one type for all errors of CUDA. These are of what was asked for:
  if (text.find("CUDA error: ") == std::string::npos ||
      contains_any(text, {"device-side assert", "invalid argument", "invalid configuration",
                          "no kernel image", "CUBLAS_STATUS_INVALID_VALUE", "CUBLAS_STATUS_NOT_SUPPORTED"}))
    return std::nullopt;
  return DeviceFailure(text, /*out_of_memory=*/false);
}

at::Device place_of(const Device& device) {
  return device.gpu() < 0 ? at::Device(at::kCPU)
                          : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.gpu()));
}

at::Tensor zeros_on_host(const at::Tensor& like, Device& device) {
  std::shared_ptr<char> memory = device.host_memory(like.nbytes());
  std::memset(memory.get(), 0, like.nbytes());
  char* const bytes = memory.get();
  return at::for_blob(bytes, like.sizes())
      .deleter([memory = std::move(memory)](void*) {})
      .options(like.options())
      .target_device(like.device())
      .make_tensor();
}

void move_to_host(c10::StorageImpl& storage, Device& device) {
  auto memory = std::make_unique<std::shared_ptr<char>>(device.host_memory(storage.nbytes()));
  char* const bytes = memory->get();
  device.copy(bytes, storage.data(), storage.nbytes(), device.copies());
  device.wait(device.copies());
  storage.set_data_ptr_noswap({bytes, memory.release(),
                               [](void* owner) { delete static_cast<std::shared_ptr<char>*>(owner); },
                               at::kCPU});
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
