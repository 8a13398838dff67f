// Memory that a tensor frees serves the next one of its size, and only such.
#include "trainer/pipeline/tensor_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "trainer/comm/host_memory.h"

namespace sailor {
namespace {

struct TensorCacheTest : testing::Test {
  TensorCacheTest() {
    use_tensor_cache();
    release_cached_tensors();
  }
  ~TensorCacheTest() override { release_cached_tensors(); }
};

TEST_F(TensorCacheTest, AFreedBlockIsUsedAgain) {
  const int64_t before = tensor_cache_bytes();
  const void* first = nullptr;
  for (int i = 0; i < 5; ++i) {
    const at::Tensor x = at::ones({1 << 20});
    if (i == 0) first = x.data_ptr();
    EXPECT_EQ(x.data_ptr(), first);
    EXPECT_EQ(x.sum().item<float>(), 1 << 20);
  }
  EXPECT_NEAR(static_cast<double>(tensor_cache_bytes() - before), 4 << 20, 4096);
}

TEST_F(TensorCacheTest, AMuchSmallerTensorLeavesALargeBlockAlone) {
  { const at::Tensor large = at::ones({1 << 20}); }
  const int64_t before = tensor_cache_bytes();
  const at::Tensor small = at::ones({1 << 18});
  EXPECT_GT(tensor_cache_bytes(), before);
}

TEST_F(TensorCacheTest, TensorsOfEverySizeInTurnDoNotPileUp) {
  const int64_t before = tensor_cache_bytes();
  for (const int order : {1, -1}) {
    for (int i = 0; i < 20; ++i) {
      const int64_t large = (int64_t{1} << 16) + (order > 0 ? i : 19 - i) * (int64_t{1} << 17);
      const at::Tensor x = at::ones({large, 1}, at::kByte);
      EXPECT_LE(tensor_cache_bytes() - before, 2 * (int64_t{20} << 17)) << large;
    }
  }
}

TEST_F(TensorCacheTest, WhatIsFreeCanBeGivenBack) {
  const int64_t before = tensor_cache_bytes();
  const at::Tensor kept = at::ones({1 << 20});
  { const at::Tensor passing = at::ones({1 << 21}); }
  release_cached_tensors();
  EXPECT_NEAR(static_cast<double>(tensor_cache_bytes() - before), 4 << 20, 4096);
  EXPECT_EQ(kept.sum().item<float>(), 1 << 20);
}

TEST_F(TensorCacheTest, DataIsAlignedAndEmptyTensorsAreFine) {
  for (const int64_t elements : {1, 7, 100, 5000, 16384, 1 << 20})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at::empty({elements}).data_ptr()) % 64, 0u);
  EXPECT_EQ(at::empty({0}).numel(), 0);
}

TEST_F(TensorCacheTest, ThreadsMayShareIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const at::Tensor x = at::full({20000 + 1000 * (i % 3)}, t);
        EXPECT_EQ(x.min().item<float>(), t);
        EXPECT_EQ(x.max().item<float>(), t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HostMemory, ThePeakIsAtLeastWhatWasTouched) {
  const at::Tensor ballast = at::ones({64 << 20}, at::kByte);
  EXPECT_GE(peak_resident_bytes(), int64_t{64} << 20);
}

}  // namespace
}  // namespace sailor
