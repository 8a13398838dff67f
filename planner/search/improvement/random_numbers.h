// Pseudo-random numbers that are the same everywhere, unlike those of the standard distributions: searches
// that use them give the same plan on every machine. Not thread-safe; every search has its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sailor {

class RandomNumbers {
 public:
  int below(size_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<int>((state_ >> 11) % n);
  }
  double fraction() { return below(size_t{1} << 30) / static_cast<double>(size_t{1} << 30); }

 private:
  uint64_t state_ = 0x9E3779B97F4A7C15ull;
};

}  // namespace sailor
