// Elementary functions of kernels: fp32 ones as polynomials, which compilers vectorise and which round the
// same on every processor (devices have an instruction for the exponential); fp64 ones from the library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "trainer/kernels/element.h"

namespace sailor::kernels {

SAILOR_KERNEL float square_root(float x) {
  return sqrtf(x);
}
SAILOR_KERNEL double square_root(double x) {
  return sqrt(x);
}

// e^x within 2 units in the last place; results stay between 2^-126 and 2^127.
SAILOR_KERNEL float exponential(float x) {
  x = x < -87.33F ? -87.33F : x;  // NaN passes both
  x = x > 88.02F ? 88.02F : x;
#if defined(__CUDA_ARCH__)
  // 2^(x log2(e)) by the device's instruction; its argument's rounding error is put right.
  const float argument = x * 1.44269504F;
  const float error = fmaf(x, 1.92596299e-8F, fmaf(x, 1.44269504F, -argument));
  const float power = exp2f(argument);
  return fmaf(power, error * 0.693147181F, power);
#else
  // Adding and subtracting 1.5 2^23 rounds to an integer, which is then in the low bits of the sum.
  const float sum = x * 1.44269504F + 12582912.0F, n = sum - 12582912.0F;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(sum) + 127U) << 23);
#endif
}
SAILOR_KERNEL double exponential(double x) {
  return exp(x);
}

template <class R>
SAILOR_KERNEL R sigmoid(R x) {
  return R(1) / (R(1) + exponential(-x));
}
// With 1 - sigmoid(x), to the last places where sigmoid(x) is near 1.
template <class R>
struct Sigmoid {
  R value, rest;
};
template <class R>
SAILOR_KERNEL Sigmoid<R> sigmoid_and_rest(R x) {
  const R e = exponential(-x), value = R(1) / (R(1) + e);
  return {value, value < R(0.5) ? R(1) - value : e * value};
}

// The normal distribution's integral up to x, (1 + erf(x / sqrt(2))) / 2. In fp32 by a rational Chebyshev
// fit of erfc with a relative error of 1.2e-7 (Press et al., Numerical Recipes, section 6.2).
SAILOR_KERNEL double normal_integral(double x) {
  return 0.5 * erfc(x * -0.70710678118654752440);
}
SAILOR_KERNEL float normal_integral(float x) {
  const float z = (x < 0.0F ? -x : x) * 0.70710678F, t = 1.0F / (1.0F + 0.5F * z);
  float p = 0.17087277F;
  p = p * t - 0.82215223F;
  p = p * t + 1.48851587F;
  p = p * t - 1.13520398F;
  p = p * t + 0.27886807F;
  p = p * t - 0.18628806F;
  p = p * t + 0.09678418F;
  p = p * t + 0.37409196F;
  p = p * t + 1.00002368F;
  p = p * t - 1.26551223F;
  const float half_tail = 0.5F * t * exponential(p - z * z);
  return x < 0.0F ? half_tail : 1.0F - half_tail;
}

}  // namespace sailor::kernels
