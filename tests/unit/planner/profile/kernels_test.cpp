#include "planner/profile/kernels.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

// 100 units of 1 TFLOP/s, 1 TB/s, everything at its best, tiles without prologue.
KernelModel gpu() {
  KernelModel k;
  k.peak_flops = 1e14;
  k.memory_bytes_per_s = 1e12;
  k.compute_units = 100;
  k.element_bytes = 2;
  k.efficiency = {.gemm = 1, .gemm_half_depth = 0, .memory = 1, .unaligned = 0.5, .attention = 0.5};
  return k;
}

TEST(Kernels, ALargeProductOfWholeWavesReachesThePeak) {
  const double m = 1280, n = 1280, k = 65536;  // 100 tiles
  EXPECT_DOUBLE_EQ(gpu().gemm_s(m, n, k), 2 * m * n * k / 1e14);
  KernelModel half = gpu();
  half.efficiency.gemm = 0.5;
  EXPECT_DOUBLE_EQ(half.gemm_s(m, n, k), 2 * m * n * k / 0.5e14);
}

TEST(Kernels, OneTileMoreThanAWaveTakesAnotherWave) {
  const double k = 8192, wave = gpu().gemm_s(1280, 1280, k);
  EXPECT_DOUBLE_EQ(gpu().gemm_s(1280, 1152, k), wave);
  EXPECT_DOUBLE_EQ(gpu().gemm_s(1280, 1288, k), 2 * wave);  // 10 x 11 tiles
  EXPECT_DOUBLE_EQ(gpu().gemm_s(1280, 2560, k), 2 * wave);
  EXPECT_DOUBLE_EQ(gpu().gemm_s(128, 128, k), wave);  // one unit works, as long as all would
}

TEST(Kernels, BatchesFillWavesTogether) {
  KernelModel wide = gpu();
  wide.memory_bytes_per_s = 1e13;
  const double k = 8192, wave = wide.gemm_s(128, 128, k);
  EXPECT_DOUBLE_EQ(wide.gemm_s(128, 128, k, 100), wave);
  EXPECT_DOUBLE_EQ(wide.gemm_s(128, 128, k, 101), 2 * wave);
}

TEST(Kernels, EveryTilePaysItsPrologueInElementsOfDepth) {
  KernelModel k = gpu();
  k.efficiency.gemm_half_depth = 64;
  EXPECT_DOUBLE_EQ(k.gemm_s(1280, 1280, 4096), 2.0 * 1280 * 1280 * (4096 + 64) / 1e14);
}

TEST(Kernels, AProductIsNeverFasterThanItsOperandsPassTheMemory) {
  // 8 x 8192 by 8192 x 8192: the weights are all there is to move.
  KernelModel k = gpu();
  k.memory_bytes_per_s = 1e11;
  const double bytes = 2 * (8.0 * 8192 + 8192.0 * 8192 + 8.0 * 8192);
  EXPECT_DOUBLE_EQ(k.gemm_s(8, 8192, 8192), bytes / 1e11);
  k.efficiency.memory = 0.5;
  EXPECT_DOUBLE_EQ(k.gemm_s(8, 8192, 8192), bytes / 0.5e11);
}

TEST(Kernels, WidthsThatAreNoMultipleOfAVectorAreSlower) {
  EXPECT_DOUBLE_EQ(gpu().gemm_s(1280, 1275, 65536), 2 * gpu().gemm_s(1280, 1280, 65536));
  EXPECT_DOUBLE_EQ(gpu().gemm_s(1275, 1280, 65536), 2 * gpu().gemm_s(1280, 1280, 65536));
  EXPECT_GT(gpu().gemm_s(1280, 1280, 65535), 1.99 * gpu().gemm_s(1280, 1280, 65536));
}

TEST(Kernels, StreamsAndFusedAttentionByTheirRates) {
  KernelModel k = gpu();
  k.efficiency.memory = 0.8;
  EXPECT_DOUBLE_EQ(k.stream_s(8e11), 1);
  EXPECT_DOUBLE_EQ(k.stream_s(0), 0);
  EXPECT_DOUBLE_EQ(k.fused_attention_s(5e13), 1);
}

TEST(Kernels, AFasterGpuNeverTakesLongerAndALargerProductNeverLess) {
  std::mt19937_64 random(1);
  const auto size = [&] { return static_cast<double>(8 * (1 + random() % 1024)); };
  for (int i = 0; i < 2000; ++i) {
    KernelModel k = gpu();
    k.compute_units = 1 + static_cast<int>(random() % 200);
    k.memory_bytes_per_s = 1e11 * static_cast<double>(1 + random() % 40);
    k.efficiency.gemm_half_depth = static_cast<double>(random() % 200);
    const double m = size(), n = size(), depth = size(), batch = static_cast<double>(1 + random() % 64);
    const double s = k.gemm_s(m, n, depth, batch);
    EXPECT_GE(s, 2 * m * n * depth * batch / k.peak_flops * (1 - 1e-12));
    EXPECT_GE(k.gemm_s(m + 128, n, depth, batch), s);
    EXPECT_GE(k.gemm_s(m, n + 128, depth, batch), s);
    EXPECT_GE(k.gemm_s(m, n, depth + 8, batch), s);
    EXPECT_GE(k.gemm_s(m, n, depth, batch + 1), s);
    KernelModel faster = k;
    faster.peak_flops *= 1.5;
    EXPECT_LE(faster.gemm_s(m, n, depth, batch), s);
    faster = k;
    faster.memory_bytes_per_s *= 1.5;
    EXPECT_LE(faster.gemm_s(m, n, depth, batch), s);
  }
}

TEST(Kernels, AModelNeedsPeakBandwidthAndUnitsOfTheCatalog) {
  GpuType type;
  type.name = "some";
  type.memory_bytes = 1;
  type.peak_flops = {{"bf16", 1e14}};
  type.memory_bandwidth_bytes_per_s = 1e12;
  type.compute_units = 100;
  EXPECT_TRUE(has_kernel_model(type, Precision::bf16));
  EXPECT_DOUBLE_EQ(kernel_model(type, Precision::bf16).peak_flops, 1e14);
  EXPECT_EQ(kernel_model(type, Precision::bf16).element_bytes, 2);
  const auto error = [&](Precision precision) {
    return test::error_of([&] { kernel_model(type, precision); });
  };
  EXPECT_THAT(error(Precision::fp32), HasSubstr("GPU type \"some\": an estimate needs peak_flops.fp32"));
  type.compute_units = 0;
  EXPECT_FALSE(has_kernel_model(type, Precision::bf16));
  EXPECT_THAT(error(Precision::bf16), HasSubstr("compute_units in the catalog"));
  type.compute_units = 100;
  type.memory_bandwidth_bytes_per_s = 0;
  EXPECT_FALSE(has_kernel_model(type, Precision::bf16));
}

}  // namespace
}  // namespace sailor
