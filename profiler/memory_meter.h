// Counts the bytes of tensors that this thread, and a backward that it runs, allocate and free on one kind of
// device during the meter's lifetime. Meters do not nest.
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <memory>

namespace sailor {

class MemoryMeter {
 public:
  explicit MemoryMeter(c10::DeviceType of = c10::DeviceType::CPU);
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  int64_t live_bytes() const;  // allocated and not freed since construction
  int64_t peak_bytes() const;  // maximum of that since the last reset_peak()
  void reset_peak();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Resident memory of this process.
int64_t resident_bytes();

}  // namespace sailor
