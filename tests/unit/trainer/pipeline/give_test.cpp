// Ranks that are not in the new plan hand their state over to those that are.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

class Giving : public ::testing::TestWithParam<const char*> {};

// Two stages, each on a process of its own; then one process has the whole model.
TEST_P(Giving, APlanWithFewerRanksLosesNothing) {
  constexpr int kBefore = 3, kAll = 6;
  JobSpec job = small_job("gpt2", /*layers=*/4, /*global_batch=*/4);
  job.training.steps = kAll;
  const TokenData data = repeating_data(job);
  const Plan wide = make_plan(job, /*microbatch=*/1, {{1, 1}}, {4});
  const Plan narrow = make_plan(job, /*microbatch=*/1, {{1}}, {4});

  std::map<int64_t, double> expected;
  TestJob undisturbed(GetParam(), 1);
  undisturbed.run([&](CommFactory& factory) {
    RankTrainer trainer(job, narrow, 0, factory, data);
    while (trainer.next_step() < kAll) {
      const StepResult result = trainer.step();
      expected[result.step] = result.loss;
    }
  });

  TestJob first(GetParam(), 2), second(GetParam(), 2);
  std::unique_ptr<RankTrainer> before[2];
  first.run([&](CommFactory& factory) {
    auto& trainer = before[factory.rank()];
    trainer = std::make_unique<RankTrainer>(job, wide, factory.rank(), factory, data);
    while (trainer->next_step() < kBefore) trainer->step();
  });
  first.factory(0).abort();
  first.factory(1).abort();
  second.run([&](CommFactory& factory) {
    RankTrainer* previous = before[factory.rank()].get();
    if (factory.rank() == 1) return RankTrainer::give(previous, job, factory);
    RankTrainer trainer(job, narrow, 0, factory, data);
    const Restored restored = trainer.restore(previous, "", /*givers=*/1);
    EXPECT_STREQ(to_string(restored.from), "peers");
    EXPECT_EQ(restored.steps_done, kBefore);
    EXPECT_GT(restored.bytes_received, 0);
    while (trainer.next_step() < kAll) {
      const StepResult result = trainer.step();
      EXPECT_NEAR(result.loss, expected.at(result.step), 1e-5 * expected.at(result.step))
          << "step " << result.step;
    }
  });
}

// A process that joined in a generation that failed has nothing to give, and is no obstacle.
TEST_P(Giving, WhoHasNothingGivesNothing) {
  JobSpec job = small_job("gpt2", /*layers=*/4, /*global_batch=*/4);
  job.training.steps = 2;
  const TokenData data = repeating_data(job);
  const Plan plan = make_plan(job, /*microbatch=*/1, {{1}}, {4});
  TestJob ranks(GetParam(), 2);
  ranks.run([&](CommFactory& factory) {
    if (factory.rank() == 1) return RankTrainer::give(nullptr, job, factory);
    RankTrainer trainer(job, plan, 0, factory, data);
    EXPECT_STREQ(to_string(trainer.restore(nullptr, "", /*givers=*/1).from), "start");
    trainer.step();
  });
}

INSTANTIATE_TEST_SUITE_P(Planes, Giving, ::testing::Values("thread", "socket"));

}  // namespace
}  // namespace sailor
