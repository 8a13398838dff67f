// Arrays of any element type for tests of kernels, with their values as doubles, and the places where kernels
// run: the loops of processors, and the device kernels, block by block on a processor and, if there is a GPU,
// on it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/gpu/gpu.h"
#include "trainer/kernels/activation_blocks.h"
#include "trainer/kernels/adamw_blocks.h"
#include "trainer/kernels/column_sums_blocks.h"
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

// nullptr: there is none.
inline Device* gpu_of_tests() {
  static const auto* const gpu = new std::unique_ptr<Gpu>(open_gpu({}));  // lives as long as the process
  return *gpu ? &(*gpu)->device() : nullptr;
}

// Host memory that a GPU, if there is one, can access.
inline std::shared_ptr<char> memory_of_tests(std::size_t bytes) {
  std::shared_ptr<char> memory = (gpu_of_tests() ? *gpu_of_tests() : host_device()).host_memory(bytes);
  if (!aligned(memory.get())) throw std::logic_error("kernels of packs would not be tested");
  return memory;
}

class Values {
 public:
  Values(Element type, int64_t count) : type_(type), size_(count), bytes_(memory_of_tests(all_bytes())) {
    std::memset(data(), 0xff, all_bytes());
  }
  Values(const Values& other) : Values(other.type_, other.size_) {
    std::memcpy(data(), other.bytes_.get(), all_bytes());
  }
  Values(Values&&) = default;
  Values& operator=(Values other) {
    type_ = other.type_;
    size_ = other.size_;
    bytes_ = std::move(other.bytes_);
    return *this;
  }
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
  void* data() { return bytes_.get(); }
  int64_t size() const { return size_; }
  Element type() const { return type_; }
  double operator[](int64_t i) const {
    double value = 0;
    with_element(type_, [&](auto element) {
      value = static_cast<double>(load(reinterpret_cast<const decltype(element)*>(bytes_.get())[i]));
    });
    return value;
  }
  void set(int64_t i, double value) {
    with_element(type_, [&](auto element) {
      using T = decltype(element);
      store(static_cast<Computed<T>>(value), reinterpret_cast<T*>(bytes_.get())[i]);
    });
  }

 private:
  std::size_t all_bytes() const {
    return static_cast<std::size_t>(std::max<int64_t>(size_, 1) * bytes_of(type_));
  }

  Element type_;
  int64_t size_;
  std::shared_ptr<char> bytes_;
};

class Integers {
 public:
  explicit Integers(const std::vector<int64_t>& values)
      : bytes_(memory_of_tests(values.size() * sizeof(int64_t))) {
    std::memcpy(bytes_.get(), values.data(), values.size() * sizeof(int64_t));
  }
  const int64_t* data() const { return reinterpret_cast<const int64_t*>(bytes_.get()); }

 private:
  std::shared_ptr<char> bytes_;
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
      if (kernel == "column_sums")
        return run(
            [&](HostGrid& g) { column_sums_blocks<T>(g, *static_cast<const ColumnSums*>(arguments)); });
      if (kernel == "column_sums_of_parts")
        return run([&](HostGrid& g) {
          column_sums_of_parts_blocks<T>(g, *static_cast<const ColumnSums*>(arguments));
        });
      if constexpr (sizeof(T) > 2) {
        if (kernel == "adamw")
          return run([&](HostGrid& g) { adamw_blocks<T>(g, *static_cast<const AdamWUpdate*>(arguments)); });
      }
      throw std::logic_error("no kernel " + kernel);
    });
  }
  int launches = 0;
};

// Waits for every kernel.
class RealDevice : public Launcher {
 public:
  explicit RealDevice(Device& device) : device_(device) {}
  void launch(const char* name, Element type, int64_t blocks, int threads, std::size_t shared_bytes,
              const void* arguments) override {
    kernels::launch(name, type, blocks, threads, shared_bytes, arguments, Place{true, device_.compute()});
    device_.wait(device_.compute());
  }

 private:
  Device& device_;
};

// Calls work(type, place, label) for every type, on blocks and on a GPU.
inline void on_devices(const std::function<void(Element, const Place&, const std::string&)>& work) {
  for (const Element type : kElements) {
    EmulatedDevice device;
    work(type, Place{true, nullptr, &device}, std::string("blocks, ") + name_of(type));
    EXPECT_GT(device.launches, 0);
    if (!gpu_of_tests()) continue;
    RealDevice gpu(*gpu_of_tests());
    work(type, Place{true, nullptr, &gpu}, std::string("GPU, ") + name_of(type));
  }
}

// And on the loops of processors.
inline void everywhere(const std::function<void(Element, const Place&, const std::string&)>& work) {
  for (const Element type : kElements) work(type, Place(), std::string("loops, ") + name_of(type));
  on_devices(work);
}

}  // namespace sailor::kernels::test
