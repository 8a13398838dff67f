#include "trainer/pipeline/rank_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "planner/plan/rank_layout.h"
#include "planner/spec/error.h"
#include "tests/unit/trainer/comm/ranks.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;

JobSpec small_job() {
  JobSpec job;
  job.model.name = "tiny";
  job.model.family = "gpt2";
  job.model.layers = 2;
  job.model.hidden = 16;
  job.model.heads = 4;
  job.model.feed_forward = 32;
  job.model.sequence = 8;
  job.model.vocabulary = 11;
  job.training.global_batch = 7;
  job.training.optimizer.lr = 1e-2;
  return job;
}

// Pipelines as TP degrees per stage; layers are cut as evenly as they go.
Plan make_plan(const JobSpec& job, const std::vector<std::vector<int>>& pipelines,
               const std::vector<int>& microbatches) {
  Plan plan;
  plan.model = job.model.name;
  plan.global_batch = job.training.global_batch;
  plan.microbatch = 2;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    PlanPipeline pipeline;
    pipeline.microbatches = microbatches[p];
    const int stages = static_cast<int>(pipelines[p].size());
    for (int s = 0; s < stages; ++s) {
      PlanStage stage;
      stage.first_layer = job.model.num_all_layers() * s / stages;
      stage.end_layer = job.model.num_all_layers() * (s + 1) / stages;
      stage.tp = pipelines[p][static_cast<std::size_t>(s)];
      pipeline.stages.push_back(stage);
    }
    plan.pipelines.push_back(pipeline);
  }
  return plan;
}

TokenData repeating_data(const JobSpec& job) {
  std::vector<uint16_t> tokens;
  for (int i = 0; i < 1001; ++i) tokens.push_back(static_cast<uint16_t>(i * i % 11));
  return TokenData::from_tokens(tokens, job.model.sequence, job.training.global_batch, job.model.vocabulary,
                                1);
}

TEST(RankTrainer, EveryRankReportsTheSameLossAndItFalls) {
  const JobSpec job = small_job();
  const Plan plan = make_plan(job, {{2, 1}, {1}}, {3, 1});
  const TokenData data = repeating_data(job);
  TestJob ranks("socket", num_ranks(plan));
  std::mutex mutex;
  std::map<int64_t, std::set<double>> losses, norms;
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    for (int i = 0; i < 30; ++i) {
      const StepResult result = trainer.step();
      EXPECT_EQ(result.step, i);
      EXPECT_EQ(result.tokens, 7 * 8);
      const std::lock_guard lock(mutex);
      losses[i].insert(result.loss);
      norms[i].insert(result.grad_norm);
    }
  });
  for (int64_t i = 0; i < 30; ++i) {
    EXPECT_EQ(losses[i].size(), 1u) << "ranks disagree at step " << i;
    EXPECT_EQ(norms[i].size(), 1u);
  }
  EXPECT_NEAR(*losses[0].begin(), std::log(11.0), 0.1);
  EXPECT_LT(*losses[29].begin(), 0.6 * *losses[0].begin());
}

class RecordingPacer : public Pacer {
 public:
  void computed(const PhaseWork& work, Clock::time_point start) override {
    EXPECT_LE(start, Clock::now());
    works.push_back(work);
  }
  void iteration_begins() override { ++begun; }
  void iteration_ends(Clock::time_point) override { ++ended; }
  std::vector<PhaseWork> works;
  int begun = 0, ended = 0;
};

TEST(RankTrainer, ThePacerSeesEveryPhaseWithItsSequences) {
  const JobSpec job = small_job();
  const Plan plan = make_plan(job, {{1, 1}}, {4});
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2);
  std::vector<RecordingPacer> pacers(2);
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data,
                        &pacers[static_cast<std::size_t>(factory.rank())]);
    trainer.step();
  });
  for (int stage = 0; stage < 2; ++stage) {
    const RecordingPacer& pacer = pacers[static_cast<std::size_t>(stage)];
    std::map<Phase, std::vector<int>> sequences;
    for (const PhaseWork& work : pacer.works) {
      EXPECT_EQ(work.stage, stage);
      EXPECT_EQ(work.first_layer, stage * 2);
      EXPECT_EQ(work.end_layer, stage * 2 + 2);
      sequences[work.phase].push_back(work.sequences);
    }
    EXPECT_THAT(sequences[Phase::forward], ::testing::ElementsAre(2, 2, 2, 1))
        << "the last microbatch is smaller";
    EXPECT_THAT(sequences[Phase::backward], ::testing::ElementsAre(2, 2, 2, 1));
    EXPECT_THAT(sequences[Phase::update], ::testing::ElementsAre(0));
    EXPECT_EQ(pacer.begun, 1);
    EXPECT_EQ(pacer.ended, 1);
  }
}

TEST(RankTrainer, ARankThatVanishesInTheMiddleIsACommErrorOnAllOthers) {
  const JobSpec job = small_job();
  const Plan plan = make_plan(job, {{2, 2}, {2, 1}}, {2, 2});
  const TokenData data = repeating_data(job);
  for (const char* plane : {"thread", "socket"}) {
    TestJob ranks(plane, num_ranks(plan));
    std::atomic<int> failed{0};
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      trainer.step();
      if (factory.rank() == 3) return;  // its communicators close
      EXPECT_THROW(
          {
            while (true) trainer.step();
          },
          CommError);
      ++failed;
    });
    EXPECT_EQ(failed, num_ranks(plan) - 1) << plane;
  }
}

TEST(RankTrainer, WhatItCannotTrainIsRefusedBeforeAnyCommunication) {
  const JobSpec job = small_job();
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2);
  const auto error_of = [&](const JobSpec& j, const Plan& p) -> std::string {
    try {
      RankTrainer(j, p, 0, ranks.factory(0), data);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const Plan good = make_plan(job, {{1}, {1}}, {2, 2});
  Plan zero1 = good;
  zero1.zero1 = true;
  EXPECT_THAT(error_of(job, zero1), ::testing::HasSubstr("zero1"));
  Plan uncovered = good;
  uncovered.pipelines[1].stages[0].end_layer = 2;
  EXPECT_THAT(error_of(job, uncovered), ::testing::HasSubstr("pipeline 1"));
  JobSpec bf16 = job;
  bf16.training.precision = Precision::bf16;
  EXPECT_THAT(error_of(bf16, good), ::testing::HasSubstr("training.precision"));
  JobSpec family = job;
  family.model.family = "nothing";
  EXPECT_THAT(error_of(family, good), ::testing::HasSubstr("model.family"));
}

}  // namespace
}  // namespace sailor
