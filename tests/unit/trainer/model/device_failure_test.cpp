// Errors of libtorch on a GPU: those of the GPU, and those of the program.
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "trainer/model/torch_device.h"

namespace sailor {
namespace {

std::optional<DeviceFailure> of_torch(const std::string& text) {
  return device_failure(c10::Error({"function", "file", 1}, text));
}

TEST(DeviceFailure, TooLittleMemoryIsToldApart) {
  const auto full = device_failure(c10::OutOfMemoryError({"function", "file", 1}, "CUDA out of memory"));
  ASSERT_TRUE(full.has_value());
  EXPECT_TRUE(full->out_of_memory());
  EXPECT_STREQ(full->what(), "CUDA out of memory");
  EXPECT_TRUE(of_torch("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
                  .value()
                  .out_of_memory());
}

TEST(DeviceFailure, WhatAGpuDoesNotRecoverFrom) {
  for (const char* text :
       {"CUDA error: uncorrectable ECC error encountered",
        "CUDA error: an illegal memory access was encountered", "CUDA error: unspecified launch failure"}) {
    const auto failure = of_torch(text);
    ASSERT_TRUE(failure.has_value()) << text;
    EXPECT_FALSE(failure->out_of_memory());
    EXPECT_STREQ(failure->what(), text);
  }
  const DeviceFailure own("cudaStreamSynchronize: uncorrectable ECC error encountered", false);
  EXPECT_STREQ(device_failure(own).value().what(), own.what());
}

TEST(DeviceFailure, ErrorsOfTheProgramAreNone) {
  EXPECT_FALSE(of_torch("CUDA error: device-side assert triggered"));
  EXPECT_FALSE(of_torch("CUDA error: no kernel image is available for execution on the device"));
  EXPECT_FALSE(of_torch("The size of tensor a (3) must match the size of tensor b (4)"));
  EXPECT_FALSE(device_failure(std::runtime_error("CUDA error: in a text of our own")));
}

}  // namespace
}  // namespace sailor
