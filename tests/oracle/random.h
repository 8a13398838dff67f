// Random numbers that are the same on every machine and with every standard library: the distributions of
// <random> are not. Not thread-safe.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace sailor::oracle {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // In [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) / 9007199254740992.0;
  }
  // Equally likely in every octave of [low, high).
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  // In [low, high], both included.
  int integer(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(integer(0, static_cast<int>(items.size()) - 1))];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t left = items.size(); left > 1; --left)
      std::swap(items[left - 1], items[static_cast<size_t>(integer(0, static_cast<int>(left) - 1))]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sailor::oracle
