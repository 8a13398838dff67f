// A reordering of numbers that is computed for each one alone. Immutable; thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace sailor {

// A bijection of [0, n) drawn from a key: a four-round Feistel network on the next even number of bits,
// walked until it lands inside.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key)
      : n_(n), half_bits_(std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2)), key_(key) {}

  uint64_t operator()(uint64_t x) const {
    do x = round_trip(x);
    while (x >= n_);
    return x;
  }

 private:
  static uint64_t mix(uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t round_trip(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t next = left ^ (mix(mix(key_ + round) ^ right) & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  uint64_t n_;
  int half_bits_;
  uint64_t key_;
};

}  // namespace sailor
