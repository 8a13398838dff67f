// Sum of the squares of n values, in double precision. Sums run in a fixed number of lanes, so that the
// result depends on the values alone. Instantiated for float and double.
#pragma once

#include <cstdint>

namespace sailor {

template <class T>
double square_sum(const T* values, int64_t count);

}  // namespace sailor
