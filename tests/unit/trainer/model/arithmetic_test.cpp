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

}  // namespace
}  // namespace sailor
