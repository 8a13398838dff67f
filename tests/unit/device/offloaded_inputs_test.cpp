// Inputs of blocks that wait in page-locked memory of the fake CUDA runtime, whose copies take their time.
#include "trainer/pipeline/offloaded_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/fake_nccl/fault_script.h"
#include "tests/unit/device/fake_gpus.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/pipeline/rank_trainer.h"

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

TEST(OffloadedInputs, TakeTheirBuffersAtOnce) {
  using namespace std::chrono_literals;
  TestJob one("thread", 1, {20s});
  one.run([&](CommFactory& factory) {
    FakeGpu gpu(factory, {20s});
    OffloadedInputs inputs(gpu.plane().device);
    const at::Tensor x = at::ones({3, 5}, at::kFloat);
    inputs.reserve(3);  // of no size yet
    const int before = fake::host_allocations();
    inputs.offload(x).take();
    inputs.reserve(3);
    EXPECT_EQ(fake::host_allocations() - before, 3);
    for (int round = 0; round < 2; ++round) {
      std::vector<OffloadedInput> away;
      for (int i = 0; i < 3; ++i) away.push_back(inputs.offload(x));
    }
    inputs.reserve(2);
    EXPECT_EQ(fake::host_allocations() - before, 3);
    const OffloadedInput other = inputs.offload(at::ones({7}, at::kFloat));
    EXPECT_EQ(fake::host_allocations() - before, 4);
    inputs.have_left();
  });
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
}

TEST(OffloadedInputs, NeedNoMoreMemoryAfterTheFirstStep) {
  using namespace std::chrono_literals;
  const JobSpec job = scheduled_job("llama", /*steps=*/4);
  Plan plan = make_plan(job, /*microbatch=*/1, {{1, 1}}, {8});
  for (PlanStage& stage : plan.pipelines[0].stages) stage.recompute = Recompute::offload;
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2, {20s});
  std::array<int, 2> first{}, last{};
  ranks.run([&](CommFactory& factory) {
    FakeGpu gpu(factory, {20s});
    const DevicePlane plane = gpu.plane();
    RankTrainer trainer(job, plan, factory.rank(), factory, data, nullptr, &plane);
    const auto rank = static_cast<std::size_t>(factory.rank());
    trainer.step();
    std::unique_ptr<Communicator> all = factory.create("all", {0, 1}, CommUse::collectives);
    int64_t together = 0;
    all->all_reduce(&together, 1, ElementType::i64, ReduceOp::max);
    first[rank] = fake::host_allocations();
    all->all_reduce(&together, 1, ElementType::i64, ReduceOp::max);
    for (int i = 0; i < 3; ++i) trainer.step();
    all->all_reduce(&together, 1, ElementType::i64, ReduceOp::max);
    last[rank] = fake::host_allocations();
  });
  EXPECT_EQ(last, first);
}

}  // namespace
}  // namespace sailor
