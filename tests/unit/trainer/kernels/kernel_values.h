// Arrays of any element type for tests of kernels, with their values as doubles, and the places where kernels
// run: the loops of processors, and the device kernels, block by block on a processor, as they are launched.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/kernels/activation_blocks.h"
#include "trainer/kernels/cross_entropy_blocks.h"
#include "trainer/kernels/head_blocks.h"
#include "trainer/kernels/host_grid.h"
#include "trainer/kernels/norm_blocks.h"

namespace sailor::kernels::test {

inline const char* name_of(Element type) {
  return type == Element::f32 ? "f32" : type == Element::f64 ? "f64" : type == Element::bf16 ? "bf16" : "f16";
}
inline constexpr Element kElements[] = {Element::f32, Element::f64, Element::bf16, Element::f16};
// The type of statistics.
inline Element computed(Element type) {
  return type == Element::f64 ? Element::f64 : Element::f32;
}
// Half the distance of neighbours at 1.
inline double rounding(Element type) {
  switch (type) {
    case Element::f32:
      return 0x1p-24;
    case Element::f64:
      return 0x1p-53;
    case Element::bf16:
      return 0x1p-8;
    case Element::f16:
      break;
  }
  return 0x1p-11;
}

class Values {
 public:
  Values(Element type, int64_t count)
      : type_(type), bytes_(static_cast<std::size_t>(count * bytes_of(type)), std::byte{0xff}) {}
  // value(i), rounded.
  Values(Element type, int64_t count, const std::function<double(int64_t)>& value) : Values(type, count) {
    for (int64_t i = 0; i < count; ++i) set(i, value(i));
  }
  // Numbers between -scale and scale that repeat nowhere.
  static Values some(Element type, int64_t count, double seed, double scale = 2) {
    return {type, count, [&](int64_t i) {
              return scale * std::sin(0.7 * static_cast<double>(i) * (1 + seed / 97) + seed);
            }};
  }
  void* data() { return bytes_.data(); }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()) / bytes_of(type_); }
  Element type() const { return type_; }
  double operator[](int64_t i) const {
    double value = 0;
    with_element(type_, [&](auto element) {
      value = static_cast<double>(load(reinterpret_cast<const decltype(element)*>(bytes_.data())[i]));
    });
    return value;
  }
  void set(int64_t i, double value) {
    with_element(type_, [&](auto element) {
      using T = decltype(element);
      store(static_cast<Computed<T>>(value), reinterpret_cast<T*>(bytes_.data())[i]);
    });
  }

 private:
  Element type_;
  std::vector<std::byte> bytes_;
};

// Every element within `units` roundings of its own and of the arithmetic's type.
inline void expect_near(const Values& got, const std::vector<double>& wanted, double units,
                        const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(wanted.size())) << what;
  const double own = rounding(got.type()), arithmetic = rounding(computed(got.type()));
  double largest = 0;
  for (const double value : wanted) largest = std::max(largest, std::abs(value));
  for (int64_t i = 0; i < got.size(); ++i) {
    const double value = wanted[static_cast<std::size_t>(i)];
    ASSERT_NEAR(got[i], value,
                1.01 * own * std::abs(value) + units * arithmetic * std::max(largest, 1e-6) +
                    3e-8 * (got.type() == Element::f16))
        << what << ", element " << i << " of " << name_of(got.type());
  }
}

class EmulatedDevice : public Launcher {
 public:
  void launch(const char* name, Element type, int64_t blocks, int threads, std::size_t shared_bytes,
              const void* arguments) override {
    ++launches;
    with_element(type, [&](auto element) {
      using T = decltype(element);
      const auto run = [&](const auto& kernel) {
        run_on_processor(static_cast<int>(blocks), threads, shared_bytes, kernel);
      };
      const std::string kernel = name;
      if (kernel == "norm_forward")
        return run(
            [&](HostGrid& g) { norm_forward_blocks<T>(g, *static_cast<const NormForward*>(arguments)); });
      if (kernel == "norm_backward")
        return run(
            [&](HostGrid& g) { norm_backward_blocks<T>(g, *static_cast<const NormBackward*>(arguments)); });
      if (kernel == "norm_sums")
        return run(
            [&](HostGrid& g) { norm_sums_blocks<T>(g, *static_cast<const NormBackward*>(arguments)); });
      if (kernel == "activation_forward")
        return run([&](HostGrid& g) {
          activation_forward_blocks<T>(g, *static_cast<const ActivationPass*>(arguments));
        });
      if (kernel == "activation_backward")
        return run([&](HostGrid& g) {
          activation_backward_blocks<T>(g, *static_cast<const ActivationPass*>(arguments));
        });
      if (kernel == "move_heads")
        return run([&](HostGrid& g) { move_heads_blocks<T>(g, *static_cast<const HeadMove*>(arguments)); });
      if (kernel == "cross_entropy_forward")
        return run([&](HostGrid& g) {
          cross_entropy_forward_blocks<T>(g, *static_cast<const CrossEntropy*>(arguments));
        });
      if (kernel == "cross_entropy_backward")
        return run([&](HostGrid& g) {
          cross_entropy_backward_blocks<T>(g, *static_cast<const CrossEntropy*>(arguments));
        });
      throw std::logic_error("no kernel " + kernel);
    });
  }
  int launches = 0;
};

// Calls work(type, place, label) for every type, on the loops of processors and on blocks.
inline void everywhere(const std::function<void(Element, const Place&, const std::string&)>& work) {
  for (const Element type : kElements) {
    work(type, Place(), std::string("loops, ") + name_of(type));
    EmulatedDevice device;
    work(type, Place{true, nullptr, &device}, std::string("blocks, ") + name_of(type));
    EXPECT_GT(device.launches, 0);
  }
}

}  // namespace sailor::kernels::test
