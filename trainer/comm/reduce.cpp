#include "trainer/comm/reduce.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "trainer/comm/narrow_float.h"

namespace sailor {
namespace {

constexpr std::size_t kBlock =
    1024;  // elements accumulated at a time, so that `out` may be one of the inputs

// The type in which elements are summed, and the way there and back.
template <class T>
struct Accumulated {
  using type = T;
  static T in(T x) { return x; }
  static T out(T x) { return x; }
};
template <class T>
struct AccumulatedWide {
  using type = float;
  static float in(T x) { return widen(x); }
  static T out(float x) {
    T result;
    narrow(x, result);
    return result;
  }
};
template <>
struct Accumulated<Bf16> : AccumulatedWide<Bf16> {};
template <>
struct Accumulated<Fp16> : AccumulatedWide<Fp16> {};

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
    case ElementType::f16:
      return reduce_typed<Fp16>(op, inputs, out, count);
    case ElementType::i64:
      return reduce_typed<int64_t>(op, inputs, out, count);
    case ElementType::u8:
      return reduce_typed<uint8_t>(op, inputs, out, count);
  }
}

}  // namespace sailor
