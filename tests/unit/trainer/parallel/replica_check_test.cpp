// Replicas of the training state that differ are found, named and repaired.
#include "trainer/parallel/replica_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/planner/error_of.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

JobSpec checked_job(OnDivergence action, const std::string& family = "gpt2") {
  JobSpec job = small_job(family, /*layers=*/4, /*global_batch=*/12);
  job.training.replicas = {.check_every = 1, .on_divergence = action};
  return job;
}

// Three pipelines: two stages with TP 2 and 1, the other way round, and a single rank; ranks 0 to 6.
Plan mixed_plan(const JobSpec& job) {
  return make_plan(job, /*microbatch=*/2, {{2, 1}, {1, 2}, {1}}, {2, 2, 2});
}

// The lines of each step, as rank 0 sees them; all ranks see the same. `disturb` is called before every step.
using Disturb = std::function<void(int step, int rank, RankTrainer& trainer)>;
std::vector<std::vector<std::string>> train(const JobSpec& job, const Plan& plan, int steps,
                                            const Disturb& disturb) {
  const TokenData data = repeating_data(job);
  std::vector<std::vector<std::vector<std::string>>> lines(static_cast<std::size_t>(num_ranks(plan)));
  TestJob ranks("thread", num_ranks(plan));
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    for (int step = 0; step < steps; ++step) {
      if (disturb) disturb(step, factory.rank(), trainer);
      lines[static_cast<std::size_t>(factory.rank())].push_back(trainer.step().diverged);
    }
  });
  for (const auto& of_rank : lines) EXPECT_EQ(of_rank, lines.front());
  return lines.front();
}

Parameter& parameter_of(RankTrainer& trainer, const std::string& part, bool sharded) {
  for (Parameter* parameter : trainer.parameters())
    if (parameter->name.find(part) != std::string::npos && parameter->sharded == sharded) return *parameter;
  throw std::logic_error("no parameter like " + part);
}

// One that an update does not round away: of the upper half of the mantissa.
void flip_a_bit(const at::Tensor& value) {
  static_cast<unsigned char*>(value.detach().data_ptr())[2] ^= 1;
}

TEST(ReplicaCheck, HealthyReplicasHaveTheSameBitsUnderEveryPlan) {
  for (const Zero zero : {Zero::none, Zero::optimizer}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
      for (const char* optimizer : {"adamw", "muon"}) {
        JobSpec job = checked_job(OnDivergence::stop);
        job.training.precision = precision;
        job.training.optimizer.name = optimizer;
        job.training.ema = EmaSpec{};
        Plan plan = mixed_plan(job);
        plan.zero = zero;
        EXPECT_THAT(train(job, plan, 3, nullptr), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
      }
    }
  }
  JobSpec llama = checked_job(OnDivergence::stop, "llama");
  EXPECT_THAT(train(llama, mixed_plan(llama), 2, nullptr), ElementsAre(IsEmpty(), IsEmpty()));
}

// One bit, in a parameter that three ranks hold.
TEST(ReplicaCheck, TheRankWithAnotherValueIsNamedUntilItIsRepaired) {
  for (const Zero zero : {Zero::none, Zero::optimizer}) {
    for (const bool heals : {false, true}) {
      const JobSpec job = checked_job(heals ? OnDivergence::heal : OnDivergence::report);
      Plan plan = make_plan(job, /*microbatch=*/2, {{1, 1}, {1, 1}, {1, 1}}, {2, 2, 2});
      plan.zero = zero;
      const auto lines = train(job, plan, 4, [](int step, int rank, RankTrainer& trainer) {
        if (step == 1 && rank == 3) flip_a_bit(parameter_of(trainer, "weight", true).value);
      });
      EXPECT_THAT(lines[0], IsEmpty());
      if (zero == Zero::optimizer) {  // the update's gather has replaced it by the owner's
        EXPECT_THAT(lines[1], IsEmpty());
        continue;
      }
      ASSERT_THAT(lines[1], SizeIs(1));
      EXPECT_THAT(lines[1][0],
                  AllOf(HasSubstr("rank 3 (pipeline 1, stage 1"), HasSubstr("than 2 other ranks")));
      EXPECT_THAT(lines[2], heals ? SizeIs(0) : SizeIs(1));
      EXPECT_THAT(lines[3], heals ? SizeIs(0) : SizeIs(1));
    }
  }
}

TEST(ReplicaCheck, OptimizerStatesArePartOfIt) {
  for (const bool heals : {false, true}) {
    const JobSpec job = checked_job(heals ? OnDivergence::heal : OnDivergence::report);
    const Plan plan = mixed_plan(job);
    const auto lines = train(job, plan, 4, [](int step, int rank, RankTrainer& trainer) {
      if (step == 2 && rank == 6) trainer.optimizer().state(0).front().tensor.zero_();
    });
    EXPECT_THAT(lines[1], IsEmpty());
    ASSERT_THAT(lines[2], Not(IsEmpty()));
    for (const std::string& line : lines[2]) EXPECT_THAT(line, HasSubstr("rank 6 (pipeline 2, stage 0"));
    EXPECT_EQ(lines[3].empty(), heals);
  }
}

// Hybrid ZeRO: three groups of two pipelines have the same slices.
TEST(ReplicaCheck, GroupsOfPipelinesCompareWhatTheyShare) {
  for (const Zero zero : {Zero::optimizer, Zero::gradients, Zero::parameters}) {
    for (const bool heals : {false, true}) {
      const JobSpec job = checked_job(heals ? OnDivergence::heal : OnDivergence::report);
      Plan plan = make_plan(job, /*microbatch=*/1, {{1}, {1}, {1}, {1}, {1}, {1}}, {2, 2, 2, 2, 2, 2});
      plan.zero = zero;
      plan.zero_group = 2;
      const auto lines = train(job, plan, 4, [](int step, int rank, RankTrainer& trainer) {
        if (step == 2 && rank == 3) trainer.optimizer().state(0).front().tensor.zero_();
      });
      EXPECT_THAT(lines[1], IsEmpty());
      ASSERT_THAT(lines[2], Not(IsEmpty()));
      EXPECT_THAT(lines[2][0], AllOf(HasSubstr("rank 3 (pipeline 3"), HasSubstr("than 2 other ranks")));
      EXPECT_EQ(lines[3].empty(), heals) << lines[3].front();
    }
  }
}

TEST(ReplicaCheck, TwoReplicasAreBothNamedAndCannotBeRepaired) {
  const auto run = [](OnDivergence action) {
    const JobSpec job = checked_job(action);
    return train(job, make_plan(job, /*microbatch=*/2, {{1}, {1}}, {3, 3}), 2,
                 [](int step, int rank, RankTrainer& trainer) {
                   if (step == 1 && rank == 0) flip_a_bit(parameter_of(trainer, "weight", true).value);
                 });
  };
  const auto lines = run(OnDivergence::report);
  EXPECT_THAT(lines[0], IsEmpty());
  ASSERT_THAT(lines[1], SizeIs(1));
  EXPECT_THAT(lines[1][0],
              HasSubstr("rank 0 (pipeline 0, stage 0), rank 1 (pipeline 1, stage 0) have different"));
  for (const OnDivergence action : {OnDivergence::heal, OnDivergence::stop})
    EXPECT_THAT(test::error_of<std::runtime_error>([&] { run(action); }),
                AllOf(HasSubstr("after step 2"), HasSubstr("rank 0")));
}

// Norms are on all TP ranks, of which only the first sums their gradients with other pipelines.
TEST(ReplicaCheck, TpRanksHoldTheSameOfWhatIsNotSharded) {
  const JobSpec job = checked_job(OnDivergence::report);
  const Plan plan = make_plan(job, /*microbatch=*/2, {{4}}, {6});
  const auto lines = train(job, plan, 2, [](int step, int rank, RankTrainer& trainer) {
    if (step == 1 && rank == 2) flip_a_bit(parameter_of(trainer, "weight", false).value);
  });
  EXPECT_THAT(lines[0], IsEmpty());
  EXPECT_THAT(lines[1],
              ElementsAre(AllOf(HasSubstr("rank 2"), HasSubstr("what the TP ranks of a stage share"),
                                HasSubstr("than 3 other ranks"))));
}

TEST(ReplicaCheck, ComparesOnlyWhenItIsDue) {
  JobSpec job = checked_job(OnDivergence::report);
  job.training.replicas.check_every = 3;
  const Plan plan = make_plan(job, /*microbatch=*/2, {{1}, {1}, {1}}, {2, 2, 2});
  const auto lines = train(job, plan, 6, [](int step, int rank, RankTrainer& trainer) {
    if (step == 0 && rank == 1) flip_a_bit(parameter_of(trainer, "weight", true).value);
  });
  EXPECT_THAT(lines, ElementsAre(IsEmpty(), IsEmpty(), SizeIs(1), IsEmpty(), IsEmpty(), SizeIs(1)));
}

}  // namespace
}  // namespace sailor
