// The settings of libtorch that change results or speed on a GPU.
#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include "trainer/model/torch_device.h"

namespace sailor {
namespace {

TEST(Arithmetic, IsTheSameWithAnyReleaseOfLibtorch) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  const auto in_32_bit = context.allowFP16ReductionCuBLAS();
  context.setAllowFP16ReductionCuBLAS(true);
  EXPECT_EQ(set_arithmetic(), "32-bit products in TF32, sums of 16-bit products in 32 bit");
  EXPECT_TRUE(context.allowTF32CuBLAS()) << "the rate of 32-bit products in the catalog";
  EXPECT_TRUE(context.allowTF32CuDNN());
  EXPECT_TRUE(context.allowFP16ReductionCuBLAS() == in_32_bit);
#if TORCH_VERSION_MAJOR >= 2
  context.setAllowBF16ReductionCuBLAS(false);
  const auto bf16_in_32_bit = context.allowBF16ReductionCuBLAS();
  context.setAllowBF16ReductionCuBLAS(true);
  set_arithmetic();
  EXPECT_TRUE(context.allowBF16ReductionCuBLAS() == bf16_in_32_bit);
#endif
}

TEST(Arithmetic, DeterministicAlgorithmsAreASettingOfTheProcess) {
  at::Context& context = at::globalContext();
  EXPECT_FALSE(context.deterministicAlgorithms());
  use_deterministic_algorithms();
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly())
      << "an operation without a deterministic form throws";
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  EXPECT_FALSE(context.deterministicFillUninitializedMemory()) << "it costs time, and nothing reads them";
#endif
  context.setDeterministicAlgorithms(false, /*warn_only=*/false);
}

}  // namespace
}  // namespace sailor
