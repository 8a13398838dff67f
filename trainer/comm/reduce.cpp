#include "trainer/comm/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace sailor {
namespace {

constexpr std::size_t kBlock =
    1024;  // elements accumulated at a time, so that `out` may be one of the inputs

struct Bf16 {
  uint16_t bits;
};

float widen(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

Bf16 narrow(float x) {
  if (std::isnan(x)) return {0x7fc0};
  const auto bits = std::bit_cast<uint32_t>(x);
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

// The type in which elements are summed, and the way there and back.
template <class T>
struct Accumulated {
  using type = T;
  static T in(T x) { return x; }
  static T out(T x) { return x; }
};
template <>
struct Accumulated<Bf16> {
  using type = float;
  static float in(Bf16 x) { return widen(x); }
  static Bf16 out(float x) { return narrow(x); }
};

template <class T>
void reduce_typed(ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count) {
  using A = Accumulated<T>;
  std::array<typename A::type, kBlock> sum;
  auto* result = static_cast<T*>(out);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    const T* first = static_cast<const T*>(inputs[0]) + begin;
    for (std::size_t i = 0; i < n; ++i) sum[i] = A::in(first[i]);
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      const T* next = static_cast<const T*>(inputs[k]) + begin;
      if (op == ReduceOp::sum) {
        for (std::size_t i = 0; i < n; ++i) sum[i] = static_cast<typename A::type>(sum[i] + A::in(next[i]));
      } else {
        for (std::size_t i = 0; i < n; ++i) {
          const auto x = A::in(next[i]);
          if (!(x <= sum[i])) sum[i] = x;  // lets a NaN through
        }
      }
    }
    for (std::size_t i = 0; i < n; ++i) result[begin + i] = A::out(sum[i]);
  }
}

}  // namespace

void reduce_in_order(ReduceOp op, ElementType type, std::span<const void* const> inputs, void* out,
                     std::size_t count) {
  switch (type) {
    case ElementType::f32:
      return reduce_typed<float>(op, inputs, out, count);
    case ElementType::f64:
      return reduce_typed<double>(op, inputs, out, count);
    case ElementType::bf16:
      return reduce_typed<Bf16>(op, inputs, out, count);
    case ElementType::i64:
      return reduce_typed<int64_t>(op, inputs, out, count);
    case ElementType::u8:
      return reduce_typed<uint8_t>(op, inputs, out, count);
  }
}

}  // namespace sailor
