#include "trainer/optim/kernels.h"

#include <cmath>
#include <type_traits>

namespace sailor {
namespace {

// Loops are written once and compiled for the baseline and for wider vectors (the `wide` functions below).
#define ALWAYS_INLINE [[gnu::always_inline]] inline

template <class T, class R>
ALWAYS_INLINE void adamw_loop(T* __restrict p, R* __restrict rounded, const T* __restrict g, T* __restrict m,
                              T* __restrict v, int64_t count, const AdamWCoefficients& c) {
  const T beta1 = static_cast<T>(c.beta1), one_minus_beta1 = static_cast<T>(1 - c.beta1);
  const T beta2 = static_cast<T>(c.beta2), one_minus_beta2 = static_cast<T>(1 - c.beta2);
  const T epsilon = static_cast<T>(c.epsilon), keep = static_cast<T>(c.keep);
  const T step_size = static_cast<T>(c.step_size), second_correction = static_cast<T>(c.second_correction);
  const T scale = static_cast<T>(c.gradient_scale);
  for (int64_t i = 0; i < count; ++i) {
    const T gradient = scale * g[i];
    m[i] = beta1 * m[i] + one_minus_beta1 * gradient;
    v[i] = beta2 * v[i] + one_minus_beta2 * gradient * gradient;
    p[i] = keep * p[i] - step_size * m[i] / (std::sqrt(v[i] * second_correction) + epsilon);
    if constexpr (!std::is_void_v<R>) narrow(p[i], rounded[i]);
  }
}

enum class Momentum { none, heavy_ball, nesterov };

template <Momentum kMomentum, class T, class R>
ALWAYS_INLINE void sgd_loop(T* __restrict p, R* __restrict rounded, const T* __restrict g, T* __restrict b,
                            int64_t count, const SgdCoefficients& c) {
  const T lr = static_cast<T>(c.learning_rate), decay = static_cast<T>(c.weight_decay);
  const T momentum = static_cast<T>(c.momentum), scale = static_cast<T>(c.gradient_scale);
  for (int64_t i = 0; i < count; ++i) {
    T gradient = scale * g[i] + decay * p[i];
    if constexpr (kMomentum != Momentum::none) {
      b[i] = momentum * b[i] + gradient;
      gradient = kMomentum == Momentum::nesterov ? gradient + momentum * b[i] : b[i];
    }
    p[i] -= lr * gradient;
    if constexpr (!std::is_void_v<R>) narrow(p[i], rounded[i]);
  }
}

template <class T, class R>
ALWAYS_INLINE void sgd_any(T* p, R* rounded, const T* g, T* b, int64_t count, const SgdCoefficients& c) {
  if (!b) {
    sgd_loop<Momentum::none>(p, rounded, g, b, count, c);
  } else if (c.nesterov) {
    sgd_loop<Momentum::nesterov>(p, rounded, g, b, count, c);
  } else {
    sgd_loop<Momentum::heavy_ball>(p, rounded, g, b, count, c);
  }
}

template <class T>
ALWAYS_INLINE void average_loop(T* __restrict average, const T* __restrict value, int64_t count,
                                double decay) {
  const T keep = static_cast<T>(decay), add = static_cast<T>(1 - decay);
  for (int64_t i = 0; i < count; ++i) average[i] = keep * average[i] + add * value[i];
}

template <class T>
ALWAYS_INLINE void muon_direction_loop(T* __restrict direction, const T* __restrict g, const T* __restrict b,
                                       int64_t count, const MuonCoefficients& c) {
  const T momentum = static_cast<T>(c.momentum), rest = static_cast<T>(1 - c.momentum);
  const T scale = static_cast<T>(c.gradient_scale);
  for (int64_t i = 0; i < count; ++i) {
    const T gradient = scale * g[i], next = momentum * b[i] + rest * gradient;
    direction[i] = c.nesterov ? momentum * next + rest * gradient : next;
  }
}

template <class T, class R>
ALWAYS_INLINE void muon_loop(T* __restrict p, R* __restrict rounded, const T* __restrict g, T* __restrict b,
                             const T* __restrict direction, int64_t count, const MuonCoefficients& c) {
  const T lr = static_cast<T>(c.learning_rate), keep = static_cast<T>(c.keep);
  const T momentum = static_cast<T>(c.momentum), rest = static_cast<T>(1 - c.momentum);
  const T scale = static_cast<T>(c.gradient_scale);
  for (int64_t i = 0; i < count; ++i) {
    b[i] = momentum * b[i] + rest * (scale * g[i]);
    p[i] = keep * p[i] - lr * direction[i];
    if constexpr (!std::is_void_v<R>) narrow(p[i], rounded[i]);
  }
}

#undef ALWAYS_INLINE

#ifdef __x86_64__
template <class T, class R>
[[gnu::target("avx2")]] void adamw_wide(T* p, R* rounded, const T* g, T* m, T* v, int64_t count,
                                        const AdamWCoefficients& c) {
  adamw_loop(p, rounded, g, m, v, count, c);
}
template <class T, class R>
[[gnu::target("avx2")]] void sgd_wide(T* p, R* rounded, const T* g, T* b, int64_t count,
                                      const SgdCoefficients& c) {
  sgd_any(p, rounded, g, b, count, c);
}

template <class T>
[[gnu::target("avx2")]] void average_wide(T* average, const T* value, int64_t count, double decay) {
  average_loop(average, value, count, decay);
}

template <class T>
[[gnu::target("avx2")]] void muon_direction_wide(T* direction, const T* g, const T* b, int64_t count,
                                                 const MuonCoefficients& c) {
  muon_direction_loop(direction, g, b, count, c);
}
template <class T, class R>
[[gnu::target("avx2")]] void muon_wide(T* p, R* rounded, const T* g, T* b, const T* direction, int64_t count,
                                       const MuonCoefficients& c) {
  muon_loop(p, rounded, g, b, direction, count, c);
}

bool has_wide_vectors() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

}  // namespace

template <class T, class R>
void adamw_update(T* p, R* rounded, const T* g, T* m, T* v, int64_t count, const AdamWCoefficients& c) {
#ifdef __x86_64__
  if (has_wide_vectors()) return adamw_wide(p, rounded, g, m, v, count, c);
#endif
  adamw_loop(p, rounded, g, m, v, count, c);
}

template <class T, class R>
void sgd_update(T* p, R* rounded, const T* g, T* momentum, int64_t count, const SgdCoefficients& c) {
#ifdef __x86_64__
  if (has_wide_vectors()) return sgd_wide(p, rounded, g, momentum, count, c);
#endif
  sgd_any(p, rounded, g, momentum, count, c);
}

template <class T>
void average_update(T* average, const T* value, int64_t count, double decay) {
#ifdef __x86_64__
  if (has_wide_vectors()) return average_wide(average, value, count, decay);
#endif
  average_loop(average, value, count, decay);
}
template void average_update(float*, const float*, int64_t, double);
template void average_update(double*, const double*, int64_t, double);

template <class T>
void muon_direction(T* direction, const T* g, const T* momentum, int64_t count, const MuonCoefficients& c) {
#ifdef __x86_64__
  if (has_wide_vectors()) return muon_direction_wide(direction, g, momentum, count, c);
#endif
  muon_direction_loop(direction, g, momentum, count, c);
}

template <class T, class R>
void muon_update(T* p, R* rounded, const T* g, T* momentum, const T* direction, int64_t count,
                 const MuonCoefficients& c) {
#ifdef __x86_64__
  if (has_wide_vectors()) return muon_wide(p, rounded, g, momentum, direction, count, c);
#endif
  muon_loop(p, rounded, g, momentum, direction, count, c);
}

template void muon_direction(float*, const float*, const float*, int64_t, const MuonCoefficients&);
template void muon_direction(double*, const double*, const double*, int64_t, const MuonCoefficients&);
#define INSTANTIATE(T, R)                                                                      \
  template void adamw_update(T*, R*, const T*, T*, T*, int64_t, const AdamWCoefficients&);     \
  template void muon_update(T*, R*, const T*, T*, const T*, int64_t, const MuonCoefficients&); \
  template void sgd_update(T*, R*, const T*, T*, int64_t, const SgdCoefficients&);
INSTANTIATE(float, Bf16)
INSTANTIATE(float, Fp16)
INSTANTIATE(float, void)
INSTANTIATE(double, void)
#undef INSTANTIATE

}  // namespace sailor
