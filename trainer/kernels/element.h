// Elements of tensors in plain memory, as kernels read and write them: 16-bit ones are computed with in fp32.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "trainer/comm/narrow_float.h"

// A function of kernels: it runs on a device, and on processors it is inlined into loops for any vectors.
#if defined(__CUDACC__)
#define SAILOR_KERNEL __host__ __device__ inline
#else
#define SAILOR_KERNEL [[gnu::always_inline]] inline
#endif

namespace sailor::kernels {

enum class Element { f32, f64, bf16, f16 };

template <class T>
struct ComputedIn {
  using Type = float;
};
template <>
struct ComputedIn<double> {
  using Type = double;
};
template <class T>
using Computed = typename ComputedIn<T>::Type;

SAILOR_KERNEL float load(float x) {
  return x;
}
SAILOR_KERNEL double load(double x) {
  return x;
}
SAILOR_KERNEL float load(Bf16 x) {
  return widen(x);
}
SAILOR_KERNEL float load(Fp16 x) {
#if defined(__CUDA_ARCH__)
  return __half2float(std::bit_cast<__half>(x));
#else
  return widen(x);
#endif
}

SAILOR_KERNEL void store(float x, float& place) {
  place = x;
}
SAILOR_KERNEL void store(double x, double& place) {
  place = x;
}
// On devices by an instruction, with the same result but for the bits of NaN.
SAILOR_KERNEL void store(float x, Bf16& place) {
#if defined(__CUDA_ARCH__)
  place = std::bit_cast<Bf16>(__float2bfloat16_rn(x));
#else
  narrow(x, place);
#endif
}
SAILOR_KERNEL void store(float x, Fp16& place) {
#if defined(__CUDA_ARCH__)
  place = std::bit_cast<Fp16>(__float2half_rn(x));
#else
  narrow(x, place);
#endif
}

// Calls work(T()) for the type of the elements.
template <class Work>
void with_element(Element type, const Work& work) {
  switch (type) {
    case Element::f32:
      return work(float());
    case Element::f64:
      return work(double());
    case Element::bf16:
      return work(Bf16());
    case Element::f16:
      return work(Fp16());
  }
}

SAILOR_KERNEL int64_t bytes_of(Element type) {
  return type == Element::f64 ? 8 : type == Element::f32 ? 4 : 2;
}

}  // namespace sailor::kernels
