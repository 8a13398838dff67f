// Sum of the squares of n values, in double precision. Sums run in blocks and lanes of fixed sizes, so that
// the result depends on the values alone, not on the number of threads (ATen's). Instantiated for float and
// double.
#pragma once

#include <cstdint>

namespace sailor {

template <class T>
double square_sum(const T* values, int64_t count);

}  // namespace sailor
