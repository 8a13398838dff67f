// Inputs of blocks that wait in page-locked memory of the fake CUDA runtime, whose copies take their time.
#include "trainer/pipeline/offloaded_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "tests/fake_nccl/fault_script.h"
#include "tests/unit/device/fake_gpus.h"
#include "tests/unit/trainer/comm/ranks.h"

namespace sailor {
namespace {

TEST(OffloadedInputs, LeaveTheDeviceAndComeBack) {
  using namespace std::chrono_literals;
  TestJob one("thread", 1, {20s});
  one.run([&](CommFactory& factory) {
    FakeGpu gpu(factory, {20s});
    OffloadedInputs inputs(gpu.plane().device);
    const auto ones = [](double value) { return at::full({3, 5}, value, at::kFloat); };
    const auto gone = [](const c10::weak_intrusive_ptr<at::TensorImpl>& tensor) { return tensor.expired(); };
    const auto weak = [](const at::Tensor& tensor) {
      return c10::weak_intrusive_ptr<at::TensorImpl>(tensor.getIntrusivePtr());
    };
    std::vector<OffloadedInput> away;
    std::vector<c10::weak_intrusive_ptr<at::TensorImpl>> here;
    for (const double value : {1.0, 2.0, 3.0}) {
      at::Tensor x = ones(value);
      here.push_back(weak(x));
      away.push_back(inputs.offload(std::move(x)));
      EXPECT_TRUE(away.back().waits());
    }
    EXPECT_TRUE(gone(here[0]) && gone(here[1])) << "one copy is under way";
    EXPECT_FALSE(gone(here[2]));
    inputs.have_left();
    EXPECT_TRUE(gone(here[2]));
    away[2].fetch();
    away[2].fetch();
    for (const int i : {2, 0, 1}) {
      EXPECT_TRUE(at::equal(away[static_cast<std::size_t>(i)].take(), ones(i + 1)));
      EXPECT_FALSE(away[static_cast<std::size_t>(i)].waits());
    }
    // One that nobody takes leaves its buffer to the next.
    inputs.offload(ones(4));
    OffloadedInput last = inputs.offload(ones(5));
    inputs.have_left();
    EXPECT_TRUE(at::equal(last.take(), ones(5)));
  });
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace sailor
