// Counts the bytes of tensors that this thread allocates and frees while the meter lives. Meters do not nest.
#pragma once

#include <cstdint>
#include <memory>

namespace sailor {

class MemoryMeter {
 public:
  MemoryMeter();
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  int64_t live_bytes() const;  // allocated and not yet freed since the construction
  int64_t peak_bytes() const;  // most of that since the last reset_peak()
  void reset_peak();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Resident memory of this process.
int64_t resident_bytes();

}  // namespace sailor
