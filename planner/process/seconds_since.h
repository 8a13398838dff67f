// Wall time that has passed, by the clock that is never set.
#pragma once

#include <chrono>

namespace sailor {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace sailor
