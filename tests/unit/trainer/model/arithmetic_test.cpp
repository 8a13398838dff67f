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
  context.setAllowFP16ReductionCuBLAS(true);
  EXPECT_EQ(set_arithmetic(), "32-bit products in TF32, sums of 16-bit products in 32 bit");
  EXPECT_TRUE(context.allowTF32CuBLAS()) << "the rate of 32-bit products in the catalog";
  EXPECT_TRUE(context.allowTF32CuDNN());
  EXPECT_FALSE(context.allowFP16ReductionCuBLAS());
#if TORCH_VERSION_MAJOR >= 2
  EXPECT_FALSE(context.allowBF16ReductionCuBLAS());
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
