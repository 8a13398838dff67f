#include "trainer/optim/square_sum.h"

#include <array>

namespace sailor {

template <class T>
double square_sum(const T* values, int64_t count) {
  // One running sum would wait for itself at every element.
  constexpr int64_t kLanes = 32;
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const auto x = static_cast<double>(values[i + k]);
      lanes[static_cast<size_t>(k)] += x * x;
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (const double lane : lanes) sum += lane;
  return sum;
}

template double square_sum(const float*, int64_t);
template double square_sum(const double*, int64_t);

}  // namespace sailor
