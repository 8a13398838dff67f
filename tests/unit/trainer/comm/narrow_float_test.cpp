#include "trainer/comm/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sailor {
namespace {

Fp16 to_fp16(float x) {
  Fp16 result;
  narrow(x, result);
  return result;
}

float from_fp16(uint16_t bits) {
  return widen(Fp16{bits});
}

// Written with exponents instead of bits.
double value_of(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  double value = std::ldexp(mantissa, -24);
  if (exponent == 0x1f)
    value = mantissa == 0 ? INFINITY : NAN;
  else if (exponent > 0)
    value = std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

TEST(NarrowFloat, EveryFp16IsItsFloatAndComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double value = value_of(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(from_fp16(bits))) << i;
      ASSERT_TRUE(std::isnan(from_fp16(to_fp16(from_fp16(bits)).bits))) << i;
    } else {
      ASSERT_EQ(from_fp16(bits), value) << i;
      ASSERT_EQ(to_fp16(from_fp16(bits)).bits, bits) << i;
    }
  }
}

// Midpoints go to the even neighbour, everything else to the nearer one; the neighbour of the largest number
// is infinity.
TEST(NarrowFloat, RoundsToTheNearestFp16) {
  for (uint16_t bits = 0; bits < 0x7c00; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    const double low = value_of(bits), high = next == 0x7c00 ? 65536.0 : value_of(next);
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float sign : {1.0F, -1.0F}) {
      const uint16_t sign_bit = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(to_fp16(sign * middle).bits, (bits % 2 == 0 ? bits : next) | sign_bit) << bits;
      ASSERT_EQ(to_fp16(sign * std::nextafter(middle, 0.0F)).bits, bits | sign_bit) << bits;
      ASSERT_EQ(to_fp16(sign * std::nextafter(middle, INFINITY)).bits, next | sign_bit) << bits;
    }
  }
  for (const float large : {1e5F, std::numeric_limits<float>::max(), INFINITY})
    EXPECT_EQ(to_fp16(large).bits, 0x7c00);
  EXPECT_EQ(to_fp16(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(NarrowFloat, Bf16IsTheUpperHalfOfAFloatRounded) {
  const auto round_trip = [](float x) {
    Bf16 bits;
    narrow(x, bits);
    return widen(bits);
  };
  EXPECT_EQ(round_trip(258), 258);
  EXPECT_EQ(round_trip(257), 256);
  EXPECT_EQ(round_trip(259), 260);
  EXPECT_EQ(round_trip(std::numeric_limits<float>::max()), INFINITY);
  EXPECT_TRUE(std::isnan(round_trip(NAN)));
}

}  // namespace
}  // namespace sailor
