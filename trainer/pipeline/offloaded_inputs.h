// Inputs of blocks that wait in the memory of the node between a forward and its backward
// (Recompute::offload). On processors, where that is all the memory there is, they stay where they are.
//
// Copies run beside the computation, on the device's stream for copies. Those to the node are at most two at
// a time, so that a forward waits for a slow link instead of filling the device. Buffers in the memory of
// the node are kept for the next inputs of their size. One thread, that of the computation.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "trainer/comm/device.h"

namespace sailor {

class OffloadedInputs;

// One of them. Empty, or it waits; outlived by its OffloadedInputs.
class OffloadedInput {
 public:
  OffloadedInput() = default;
  OffloadedInput(OffloadedInput&& other) noexcept { *this = std::move(other); }
  OffloadedInput& operator=(OffloadedInput&& other) noexcept;
  ~OffloadedInput();

  bool waits() const { return of_ != nullptr; }
  // Begins to copy it back, unless it has begun.
  void fetch();
  // Leaves it empty. Later computation waits for the copy.
  at::Tensor take();

 private:
  friend class OffloadedInputs;

  OffloadedInputs* of_ = nullptr;
  at::Tensor here_;  // fetched, or never copied; before that undefined
  std::vector<int64_t> sizes_;
  at::TensorOptions options_;
  std::shared_ptr<char> buffer_;
  std::size_t bytes_ = 0;
  std::unique_ptr<StreamPoint> copied_back_;
};

class OffloadedInputs {
 public:
  explicit OffloadedInputs(Device& device) : device_(device) {}
  ~OffloadedInputs();
  OffloadedInputs(const OffloadedInputs&) = delete;
  OffloadedInputs& operator=(const OffloadedInputs&) = delete;

  // Makes buffers for that many inputs of the size of the last one at the same time, so that none is needed
  // while others wait for this rank. Does nothing on processors.
  void reserve(int count);
  // Begins to copy `x`, which later computation may still read.
  OffloadedInput offload(at::Tensor x);
  // Computation that is enqueued from now on waits until all copies to the node are done; their memory on the
  // device is free then.
  void have_left();

 private:
  friend class OffloadedInput;

  struct Leaving {
    at::Tensor x;
    std::unique_ptr<StreamPoint> copied;  // null: it already is
  };

  std::shared_ptr<char> buffer(std::size_t bytes);
  void oldest_has_left();

  Device& device_;
  std::deque<Leaving> leaving_;
  std::map<std::size_t, std::vector<std::shared_ptr<char>>> unused_;  // buffers by size
  std::map<std::size_t, int> made_;                                   // likewise: their number, used or not
  std::size_t last_bytes_ = 0;
};

}  // namespace sailor
