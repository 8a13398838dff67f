// The functions of activation.h and their slopes, for kernels.
#pragma once

#include "trainer/kernels/activation.h"
#include "trainer/kernels/arithmetic.h"

namespace sailor::kernels {

template <class R>
struct ValueAndSlope {
  R value, slope;
};

// With u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + tanh(u)) / 2 = sigmoid(2 u).
template <class R>
SAILOR_KERNEL R tanh_argument(R x) {
  return R(1.5957691216057308) * (x + R(0.044715) * x * x * x);
}

template <ActivationKind kind, class R>
SAILOR_KERNEL R activated(R x) {
  if constexpr (kind == ActivationKind::gelu) return x * normal_integral(x);
  if constexpr (kind == ActivationKind::gelu_tanh) return x * sigmoid(tanh_argument(x));
  if constexpr (kind == ActivationKind::silu) return x * sigmoid(x);
  if constexpr (kind == ActivationKind::relu) return x < R(0) ? R(0) : x;  // NaN stays
}

template <ActivationKind kind, class R>
SAILOR_KERNEL ValueAndSlope<R> value_and_slope(R x) {
  if constexpr (kind == ActivationKind::gelu) {
    const R integral = normal_integral(x), density = R(0.39894228040143268) * exponential(R(-0.5) * x * x);
    return {x * integral, integral + x * density};
  }
  if constexpr (kind == ActivationKind::gelu_tanh) {
    const Sigmoid<R> s = sigmoid_and_rest(tanh_argument(x));
    const R argument_slope = R(1.5957691216057308) * (R(1) + R(3 * 0.044715) * x * x);
    return {x * s.value, s.value + x * argument_slope * s.value * s.rest};
  }
  if constexpr (kind == ActivationKind::silu) {
    const Sigmoid<R> s = sigmoid_and_rest(x);
    return {x * s.value, s.value + x * s.value * s.rest};
  }
  if constexpr (kind == ActivationKind::relu) return {x < R(0) ? R(0) : x, x > R(0) ? R(1) : R(0)};
}

template <ActivationKind kind>
struct KindOf {
  static constexpr ActivationKind value = kind;
};
// Calls work(KindOf<kind>()).
template <class Work>
SAILOR_KERNEL void with_activation(ActivationKind kind, const Work& work) {
  switch (kind) {
    case ActivationKind::gelu:
      return work(KindOf<ActivationKind::gelu>());
    case ActivationKind::gelu_tanh:
      return work(KindOf<ActivationKind::gelu_tanh>());
    case ActivationKind::silu:
      return work(KindOf<ActivationKind::silu>());
    case ActivationKind::relu:
      return work(KindOf<ActivationKind::relu>());
  }
}

// Elements [begin, end) of y in steps of `step`.
template <ActivationKind kind, class T>
SAILOR_KERNEL void activate(const ActivationPass& pass, int64_t begin, int64_t end, int64_t step) {
  const T* __restrict x = static_cast<const T*>(pass.x);
  T* __restrict y = static_cast<T*>(pass.result);
  if (pass.gated) {
    for (int64_t i = begin; i < end; i += step)
      store(activated<kind>(load(x[2 * i])) * load(x[2 * i + 1]), y[i]);
  } else {
    for (int64_t i = begin; i < end; i += step) store(activated<kind>(load(x[i])), y[i]);
  }
}

template <ActivationKind kind, class T>
SAILOR_KERNEL void activate_backward(const ActivationPass& pass, int64_t begin, int64_t end, int64_t step) {
  using R = Computed<T>;
  const T* __restrict x = static_cast<const T*>(pass.x);
  const T* __restrict g = static_cast<const T*>(pass.for_y);
  T* __restrict for_x = static_cast<T*>(pass.result);
  if (pass.gated) {
    for (int64_t i = begin; i < end; i += step) {
      const ValueAndSlope<R> f = value_and_slope<kind>(load(x[2 * i]));
      const R gradient = load(g[i]);
      store(gradient * load(x[2 * i + 1]) * f.slope, for_x[2 * i]);
      store(gradient * f.value, for_x[2 * i + 1]);
    }
  } else {
    for (int64_t i = begin; i < end; i += step)
      store(load(g[i]) * value_and_slope<kind>(load(x[i])).slope, for_x[i]);
  }
}

}  // namespace sailor::kernels
