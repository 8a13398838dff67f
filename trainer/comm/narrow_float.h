// The floating-point types of 16 bits as plain memory, for loops without libtorch: from and to float, rounded
// to nearest even. Integer and float operations only, without branches, so that compilers vectorize them and
// every processor has the same result. Pure.
#pragma once

#include <bit>
#include <cstdint>

namespace sailor {

struct Bf16 {  // the upper half of a float
  uint16_t bits = 0;
};
struct Fp16 {  // IEEE 754's binary16: 5 bits of exponent, largest value 65504
  uint16_t bits = 0;
};

// Inlined into functions for any vector width; on devices, too.
#if defined(__CUDACC__)
#define SAILOR_ALWAYS_INLINE __host__ __device__ inline
#else
#define SAILOR_ALWAYS_INLINE [[gnu::always_inline]] inline
#endif

SAILOR_ALWAYS_INLINE float widen(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// Moved to a float's place, exponent and mantissa are a number that is 2^112 too small. Subnormal ones have
// no leading 1 there: they become the low bits of 0.5, which is then subtracted.
SAILOR_ALWAYS_INLINE float widen(Fp16 x) {
  const uint32_t high = static_cast<uint32_t>(x.bits) << 16;
  const uint32_t sign = high & 0x80000000u, twice = high + high;
  const float normal = std::bit_cast<float>((twice >> 4) + (0xe0u << 23)) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((twice >> 17) | (126u << 23)) - 0.5f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(twice < (1u << 27) ? subnormal : normal));
}

SAILOR_ALWAYS_INLINE void narrow(float x, Bf16& result) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  result.bits = static_cast<uint16_t>(x == x ? rounded : 0x7fc0u);  // adding could carry a NaN's payload away
}

// Adding a power of two that is 2^13 times the unit of the result lets the float addition round; its sum has
// the result's mantissa in the low bits. The two products before it make too large numbers infinite.
SAILOR_ALWAYS_INLINE void narrow(float x, Fp16& result) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t twice = bits + bits, exponent = twice & 0xff000000u;
  const float magnitude = std::bit_cast<float>(twice >> 1) * 0x1.0p+112f * 0x1.0p-110f;
  const uint32_t at_least = exponent < 0x71000000u ? 0x71000000u : exponent;
  const auto sum = std::bit_cast<uint32_t>(std::bit_cast<float>((at_least >> 1) + 0x07800000u) + magnitude);
  const uint32_t rounded = (sum >> 13 & 0x7c00u) + (sum & 0x0fffu);
  result.bits = static_cast<uint16_t>((bits >> 16 & 0x8000u) | (twice > 0xff000000u ? 0x7e00u : rounded));
}

#undef SAILOR_ALWAYS_INLINE

}  // namespace sailor
