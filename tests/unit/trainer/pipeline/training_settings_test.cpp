// Steps with spikes, averages of the weights, and statistics of gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

JobSpec job_with_settings() {
  return small_job("gpt2", /*layers=*/2, /*global_batch=*/7);
}

// Skips every step whose norm is above that of the last update.
TEST(TrainingSettings, ASpikeSkipsTheUpdateOnEveryRank) {
  JobSpec job = job_with_settings();
  job.training.on_spike = SpikeSpec{.factor = 1, .window = 1, .most_in_a_row = 20};
  const TokenData data = repeating_data(job);
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients}) {
    Plan plan = make_plan(job, /*microbatch=*/2, {{2, 1}, {1}}, {3, 1});
    plan.zero = zero;
    TestJob ranks("thread", num_ranks(plan));
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      double last = std::numeric_limits<double>::infinity();
      int64_t updates = 0, spikes = 0;
      for (int64_t i = 0; i < 20; ++i) {
        std::vector<at::Tensor> before;
        for (const Parameter* parameter : trainer.parameters())
          before.push_back(parameter->value.detach().clone());
        const StepResult result = trainer.step();
        EXPECT_EQ(result.step, i);
        EXPECT_EQ(result.skipped, result.grad_norm > last);
        (result.skipped ? spikes : updates) += 1;
        if (!result.skipped) last = result.grad_norm;
        EXPECT_EQ(result.spikes, spikes);
        EXPECT_EQ(trainer.optimizer().steps_done(), updates);
        for (std::size_t p = 0; p < before.size(); ++p)
          EXPECT_TRUE(!result.skipped || at::equal(before[p], trainer.parameters()[p]->value));
      }
      EXPECT_GT(updates, 2);
      EXPECT_GT(spikes, 2);
    });
  }
}

TEST(TrainingSettings, SpikesWithoutEndAreOneErrorOnEveryRank) {
  JobSpec job = job_with_settings();
  job.training.on_spike = SpikeSpec{.most_in_a_row = 2};
  const TokenData data = repeating_data(job);
  const Plan plan = make_plan(job, /*microbatch=*/2, {{1, 1}, {1}}, {2, 2});
  TestJob ranks("thread", num_ranks(plan));
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    EXPECT_FALSE(trainer.step().skipped);
    if (factory.rank() == 2) trainer.parameters()[0]->value.detach().fill_(std::nan(""));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(trainer.step().skipped);
    try {
      trainer.step();
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr("step 4: the gradient's norm is nan and the loss nan, after "
                                       "2 steps in a row that training.on_spike skipped"));
    }
    EXPECT_EQ(trainer.optimizer().steps_done(), 1);
  });
}

// Validation of averages is that of a model whose values they are, under every plan, and changes nothing.
TEST(TrainingSettings, ValidationOfAveragesLeavesTheValuesAsTheyWere) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    JobSpec job = job_with_settings();
    job.training.precision = precision;
    job.training.ema = EmaSpec{.decay = 0.8};
    const TokenData data = repeating_data(job);
    std::vector<double> of_averages;
    for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients}) {
      Plan plan = make_plan(job, /*microbatch=*/2, {{2, 1}, {1}}, {3, 1});
      plan.zero = zero;
      std::vector<double> plain, averaged;
      for (const bool validate : {false, true}) {
        job.training.ema->validate = validate;
        TestJob ranks("thread", num_ranks(plan));
        ranks.run([&](CommFactory& factory) {
          RankTrainer trainer(job, plan, factory.rank(), factory, data);
          std::vector<double> losses;
          for (int i = 0; i < 6; ++i) losses.push_back(trainer.step().loss);
          losses.push_back(trainer.evaluate(data, 17));
          losses.push_back(trainer.step().loss);
          if (factory.rank() == 0) (validate ? averaged : plain) = losses;
        });
      }
      EXPECT_GT(averaged[6], plain[6] + 0.01) << "an average is behind a loss that falls";
      of_averages.push_back(averaged[6]);
      averaged.erase(averaged.begin() + 6);
      plain.erase(plain.begin() + 6);
      EXPECT_EQ(averaged, plain) << to_string(precision) << ": validation changed the training";
    }
    for (const double loss : of_averages) EXPECT_NEAR(loss, of_averages[0], 1e-5);
  }
}

TEST(TrainingSettings, AnAverageWithoutMemoryIsTheModel) {
  JobSpec job = job_with_settings();
  const TokenData data = repeating_data(job);
  const Plan plan = make_plan(job, /*microbatch=*/2, {{1}}, {4});
  std::vector<double> losses;
  for (const auto& ema : {std::optional<EmaSpec>(), std::optional(EmaSpec{.decay = 0, .validate = true})}) {
    job.training.ema = ema;
    TestJob ranks("thread", 1);
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      for (int i = 0; i < 3; ++i) trainer.step();
      losses.push_back(trainer.evaluate(data, 17));
    });
  }
  EXPECT_EQ(losses[0], losses[1]);
}

// Under plans that give their pipelines the same sequences, however these are computed.
TEST(TrainingSettings, GradientNoiseDependsOnTheSequencesOfPipelinesAlone) {
  for (const bool tied : {false, true}) {
    JobSpec job = job_with_settings();
    job.model.tied_embeddings = tied;
    job.training.precision = Precision::fp64;
    job.metrics.gradient_statistics_every = 2;
    const auto noise_of = [&](const Plan& plan, const TokenData& data) {
      TestJob ranks("thread", num_ranks(plan));
      std::optional<GradientNoise> noise;
      ranks.run([&](CommFactory& factory) {
        RankTrainer trainer(job, plan, factory.rank(), factory, data);
        EXPECT_TRUE(trainer.step().layer_norms.empty());
        const StepResult result = trainer.step();
        EXPECT_EQ(result.layer_norms.size(), 4u);
        if (factory.rank() == 0) noise = result.noise;
      });
      return noise;
    };
    const TokenData data = repeating_data(job);
    EXPECT_FALSE(noise_of(make_plan(job, /*microbatch=*/2, {{1}}, {4}), data));
    const std::optional<GradientNoise> expected =
        noise_of(make_plan(job, /*microbatch=*/2, {{1}, {1}}, {3, 1}), data);
    ASSERT_TRUE(expected);
    EXPECT_GT(expected->noise, 0);
    for (const Zero zero : {Zero::none, Zero::optimizer}) {
      for (const auto& pipelines :
           std::vector<std::vector<std::vector<int>>>{{{2}, {1}}, {{1, 1}, {2}}, {{2, 1, 1}, {1, 4}}}) {
        Plan plan = make_plan(job, /*microbatch=*/2, pipelines, {3, 1});
        plan.zero = zero;
        const std::optional<GradientNoise> noise = noise_of(plan, data);
        ASSERT_TRUE(noise);
        EXPECT_NEAR(noise->signal, expected->signal, 1e-12) << summary(plan);
        EXPECT_NEAR(noise->noise, expected->noise, 1e-10) << summary(plan);
      }
    }
    const TokenData same = TokenData::from_tokens(std::vector<uint16_t>(801, 3), 8, 7, 11, 1);
    const std::optional<GradientNoise> none =
        noise_of(make_plan(job, /*microbatch=*/2, {{2}, {1, 1}}, {3, 1}), same);
    EXPECT_NEAR(none->noise, 0, 1e-12) << "of equal sequences";
    EXPECT_GT(none->signal, 0);
  }
}

}  // namespace
}  // namespace sailor
