#include "trainer/pipeline/offloaded_inputs.h"

#include <exception>
#include <utility>

namespace sailor {

OffloadedInput& OffloadedInput::operator=(OffloadedInput&& other) noexcept {
  std::swap(of_, other.of_);
  std::swap(here_, other.here_);
  std::swap(sizes_, other.sizes_);
  std::swap(options_, other.options_);
  std::swap(buffer_, other.buffer_);
  std::swap(bytes_, other.bytes_);
  std::swap(copied_back_, other.copied_back_);
  return *this;
}

OffloadedInput::~OffloadedInput() {
  // Copies are in order: the next one to this buffer comes after those from it.
  if (buffer_) of_->unused_[bytes_].push_back(std::move(buffer_));
}

void OffloadedInput::fetch() {
  if (!waits() || here_.defined()) return;
  Device& device = of_->device_;
  here_ = at::empty(sizes_, options_);
  device.order(device.compute(), device.copies());  // what was computed in that memory before
  device.copy(here_.data_ptr(), buffer_.get(), bytes_, device.copies());
  copied_back_ = device.point(device.copies());
}

at::Tensor OffloadedInput::take() {
  fetch();
  if (copied_back_) copied_back_->order(of_->device_.compute());
  at::Tensor x = std::move(here_);
  *this = OffloadedInput();
  return x;
}

OffloadedInputs::~OffloadedInputs() {
  try {
    if (device_.asynchronous()) device_.wait(device_.copies());
  } catch (const std::exception&) {
    // The device has failed, and copies nothing any more.
  }
}

void OffloadedInputs::reserve(int count) {
  if (last_bytes_ == 0) return;
  int& made = made_[last_bytes_];
  for (; made < count; ++made) unused_[last_bytes_].push_back(device_.host_memory(last_bytes_));
}

OffloadedInput OffloadedInputs::offload(at::Tensor x) {
  OffloadedInput input;
  input.of_ = this;
  if (!device_.asynchronous()) {
    input.here_ = std::move(x);
    return input;
  }
  x = x.contiguous();
  input.sizes_ = x.sizes().vec();
  input.options_ = x.options();
  input.bytes_ = last_bytes_ = x.nbytes();
  input.buffer_ = buffer(input.bytes_);
  device_.order(device_.compute(), device_.copies());
  device_.copy(input.buffer_.get(), x.data_ptr(), input.bytes_, device_.copies());
  leaving_.push_back({std::move(x), device_.point(device_.copies())});
  if (leaving_.size() > 1) oldest_has_left();
  return input;
}

void OffloadedInputs::have_left() {
  while (!leaving_.empty()) oldest_has_left();
}

void OffloadedInputs::oldest_has_left() {
  if (leaving_.front().copied) leaving_.front().copied->order(device_.compute());
  leaving_.pop_front();
}

std::shared_ptr<char> OffloadedInputs::buffer(std::size_t bytes) {
  std::vector<std::shared_ptr<char>>& unused = unused_[bytes];
  if (unused.empty()) {
    ++made_[bytes];
    return device_.host_memory(bytes);
  }
  std::shared_ptr<char> buffer = std::move(unused.back());
  unused.pop_back();
  return buffer;
}

}  // namespace sailor
