#include "trainer/optim/adamw_kernel.h"

#include <cmath>

namespace sailor {

template <class T>
void adamw_update(T* __restrict p, const T* __restrict g, T* __restrict m, T* __restrict v, int64_t count,
                  const AdamWCoefficients& c) {
  const T beta1 = static_cast<T>(c.beta1), one_minus_beta1 = static_cast<T>(1 - c.beta1);
  const T beta2 = static_cast<T>(c.beta2), one_minus_beta2 = static_cast<T>(1 - c.beta2);
  const T epsilon = static_cast<T>(c.epsilon), keep = static_cast<T>(c.keep);
  const T step_size = static_cast<T>(c.step_size), second_correction = static_cast<T>(c.second_correction);
  for (int64_t i = 0; i < count; ++i) {
    m[i] = beta1 * m[i] + one_minus_beta1 * g[i];
    v[i] = beta2 * v[i] + one_minus_beta2 * g[i] * g[i];
    p[i] = keep * p[i] - step_size * m[i] / (std::sqrt(v[i] * second_correction) + epsilon);
  }
}

template void adamw_update(float*, const float*, float*, float*, int64_t, const AdamWCoefficients&);
template void adamw_update(double*, const double*, double*, double*, int64_t, const AdamWCoefficients&);

}  // namespace sailor
