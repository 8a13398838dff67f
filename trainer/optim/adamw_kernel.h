// The inner loop of AdamW over plain memory, without libtorch, so that it can be compiled with flags of its
// own.
#pragma once

#include <cstdint>

namespace sailor {

struct AdamWCoefficients {
  double beta1, beta2, epsilon;
  double keep;               // 1 - lr * weight decay
  double step_size;          // lr / (1 - beta1^t)
  double second_correction;  // 1 / (1 - beta2^t)
};

// p, m, v updated in place from g, `count` elements each; the arrays do not overlap.
template <class T>
void adamw_update(T* p, const T* g, T* m, T* v, int64_t count, const AdamWCoefficients& c);

extern template void adamw_update(float*, const float*, float*, float*, int64_t, const AdamWCoefficients&);
extern template void adamw_update(double*, const double*, double*, double*, int64_t,
                                  const AdamWCoefficients&);

}  // namespace sailor
