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
#include "tests/unit/trainer/small_training.h"
#include "trainer/data/token_digest.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;

JobSpec job_to_train() {
  return sailor::small_job("gpt2", /*layers=*/2, /*global_batch=*/7);
}

Plan training_plan(const JobSpec& job, const std::vector<std::vector<int>>& pipelines,
                   const std::vector<int>& microbatches) {
  return sailor::make_plan(job, /*microbatch=*/2, pipelines, microbatches);
}

TEST(RankTrainer, EveryRankReportsTheSameLossAndItFalls) {
  const JobSpec job = job_to_train();
  const Plan plan = training_plan(job, {{2, 1}, {1}}, {3, 1});
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

TEST(RankTrainer, SaysWhatDataAStepSawWhateverThePlan) {
  const JobSpec job = job_to_train();
  const TokenData data = repeating_data(job);
  std::vector<int64_t> expected;
  for (int64_t step = 0; step < 3; ++step) {
    int64_t sum = 0;
    for (int64_t i = 0; i < job.training.global_batch; ++i) sum += token_digest(data.sequence(step, i));
    expected.push_back(sum);
  }
  EXPECT_EQ(std::set(expected.begin(), expected.end()).size(), 3u);
  const auto run = [&](const Plan& plan) {
    TestJob ranks("thread", num_ranks(plan));
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      for (const int64_t digest : expected) EXPECT_EQ(trainer.step().data_digest, digest) << summary(plan);
    });
  };
  run(training_plan(job, {{1}}, {4}));
  run(training_plan(job, {{2, 1}, {1}}, {3, 1}));
  Plan recomputed = training_plan(job, {{1, 1}}, {4});
  for (PlanStage& stage : recomputed.pipelines[0].stages) stage.recompute = Recompute::full;
  run(recomputed);
}

TEST(RankTrainer, DropoutFollowsTheStepAndIsOffInValidation) {
  JobSpec job = job_to_train();
  job.training.optimizer.lr = 0;  // steps differ by their sequences and by dropout
  const TokenData data = repeating_data(job);
  const auto run = [&](double dropout, int64_t first_step, bool recompute) {
    job.model.dropout = dropout;
    Plan plan = training_plan(job, {{2, 1}, {1}}, {3, 1});
    for (PlanPipeline& pipeline : plan.pipelines) {
      for (PlanStage& stage : pipeline.stages)
        stage.recompute = recompute ? Recompute::full : Recompute::none;
    }
    TestJob ranks("thread", num_ranks(plan));
    std::vector<double> seen;  // by rank 0: losses and norms up to step 3, and the validation's
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      trainer.set_next_step(first_step);
      std::vector<double> mine;
      while (trainer.next_step() < 3) {
        const StepResult result = trainer.step();
        mine.insert(mine.end(), {result.loss, result.grad_norm});
      }
      mine.push_back(trainer.evaluate(data, 9));
      if (factory.rank() == 0) seen = mine;
    });
    return seen;
  };
  const std::vector<double> without = run(0, 0, false), with = run(0.3, 0, false);
  ASSERT_EQ(with.size(), 7u);
  EXPECT_EQ(with.back(), without.back());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NE(with[i], without[i]);
  EXPECT_EQ(run(0.3, 0, true), with);
  const std::vector<double> resumed = run(0.3, 2, false);
  EXPECT_EQ(resumed, std::vector<double>(with.begin() + 4, with.end()));
}

// Documents of four tokens, whose last is also the first of the next: with sequences of eight tokens two
// documents are packed, with sequences of three every document is one.
TEST(RankTrainer, PackedDocumentsHaveTheLossAndGradientsOfDocumentsAlone) {
  for (const char* family : {"gpt2", "llama"}) {
    JobSpec packed_job = sailor::small_job(family, /*layers=*/2, /*global_batch=*/4);
    packed_job.model.positions = packed_job.model.sequence;
    packed_job.training.precision = Precision::fp64;
    packed_job.data.document_mask = true;
    JobSpec alone_job = packed_job;
    alone_job.model.sequence = 3;
    alone_job.data.document_mask = false;
    alone_job.training.global_batch = 8;
    std::vector<uint16_t> packed, alone;
    std::vector<int64_t> starts;
    for (int document = 0; document < 8; ++document) {
      const std::vector<uint16_t> middle = {static_cast<uint16_t>(document + 1),
                                            static_cast<uint16_t>(document * document % 11)};
      starts.push_back(static_cast<int64_t>(packed.size()));
      packed.insert(packed.end(), {0, middle[0], middle[1], 0});
      alone.insert(alone.end(), {0, middle[0], middle[1]});
    }
    starts.push_back(static_cast<int64_t>(packed.size()));
    packed.push_back(0);
    alone.push_back(0);
    const auto run = [](const JobSpec& job, const TokenData& data, const Plan& plan) {
      TestJob ranks("thread", num_ranks(plan));
      std::vector<double> losses;
      ranks.run([&](CommFactory& factory) {
        RankTrainer trainer(job, plan, factory.rank(), factory, data);
        std::vector<double> mine;
        for (int step = 0; step < 3; ++step) {
          const StepResult result = trainer.step();
          mine.insert(mine.end(),
                      {result.loss, result.grad_norm, trainer.evaluate(data, data.num_windows())});
        }
        if (factory.rank() == 0) losses = mine;
      });
      return losses;
    };
    const TokenData of_alone = TokenData::from_tokens(alone, 3, 8, 11, 1),
                    of_packed = TokenData::in_memory({packed, starts}, packed_job);
    const std::vector<double> expected =
        run(alone_job, of_alone, sailor::make_plan(alone_job, 8, {{1}}, {1}));
    for (const auto& [pipelines, microbatches] :
         std::vector<std::pair<std::vector<std::vector<int>>, std::vector<int>>>{
             {{{1}}, {4}}, {{{2, 1, 1}}, {4}}, {{{1, 2}, {1}}, {3, 1}}}) {
      Plan plan = sailor::make_plan(packed_job, 1, pipelines, microbatches);
      plan.pipelines[0].stages[0].recompute = Recompute::full;
      const std::vector<double> losses = run(packed_job, of_packed, plan);
      ASSERT_EQ(losses.size(), expected.size());
      for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i], expected[i], 1e-12) << family << " " << summary(plan) << " " << i;
    }
  }
}

class RecordingPacer : public Pacer {
 public:
  void computed(const PhaseWork& work, Clock::time_point start) override {
    EXPECT_LE(start, Clock::now());
    works.push_back(work);
  }
  void part_computed(const PhaseWork& part, Clock::time_point) override {
    EXPECT_EQ(part.phase, Phase::backward);
    parts.push_back({part.first_layer, part.end_layer, part.sequences});
  }
  void iteration_begins() override { ++begun; }
  void iteration_ends(Clock::time_point) override { ++ended; }
  std::vector<PhaseWork> works;
  std::vector<std::vector<int>> parts;  // first layer, end, sequences
  int begun = 0, ended = 0;
};

TEST(RankTrainer, ThePacerSeesEveryPhaseWithItsSequences) {
  const JobSpec job = job_to_train();
  const Plan plan = training_plan(job, {{1, 1}}, {4});
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
    // Of the last backward, before a layer's gradients are summed: layer by layer, from the last down.
    const int end = stage * 2 + 2;
    EXPECT_THAT(pacer.parts,
                ::testing::ElementsAre(std::vector<int>{end - 1, end, 1}, std::vector<int>{end - 2, end, 1}));
    EXPECT_EQ(pacer.begun, 1);
    EXPECT_EQ(pacer.ended, 1);
  }
}

// Everything that a step leaves on the ranks: losses, norms, values of parameters.
std::vector<std::vector<double>> trained(const JobSpec& job, const Plan& plan, const char* plane) {
  const TokenData data = repeating_data(job);
  TestJob ranks(plane, num_ranks(plan));
  std::vector<std::vector<double>> all(static_cast<std::size_t>(num_ranks(plan)));
  ranks.run([&](CommFactory& factory) {
    std::vector<double>& mine = all[static_cast<std::size_t>(factory.rank())];
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    for (int i = 0; i < 3; ++i) {
      const StepResult result = trainer.step();
      mine.push_back(result.loss);
      mine.push_back(result.grad_norm);
    }
    for (const Parameter* parameter : trainer.parameters())
      mine.push_back(parameter->value.detach().to(at::kDouble).pow(2).sum().item<double>());
  });
  return all;
}

TEST(RankTrainer, RecomputationChangesNoBit) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    JobSpec job = job_to_train();
    job.training.precision = precision;
    Plan plan = training_plan(job, {{2, 1}, {1}}, {3, 1});
    const auto kept = trained(job, plan, "thread");
    for (const StageRecompute& recompute :
         {StageRecompute(Recompute::light), StageRecompute(Recompute::mlp), StageRecompute(Recompute::full),
          StageRecompute(Recompute::full, 1, Recompute::light), StageRecompute(Recompute::offload),
          StageRecompute(Recompute::offload, 1, Recompute::mlp)}) {
      for (PlanPipeline& pipeline : plan.pipelines)
        for (PlanStage& stage : pipeline.stages)
          if (stage.end_layer - std::max(stage.first_layer, 1) > recompute.deep_blocks())
            stage.recompute = recompute;
      EXPECT_EQ(trained(job, plan, "thread"), kept) << to_string(recompute);
    }
  }
}

TEST(RankTrainer, ASplitBackwardChangesNoBit) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    JobSpec job = job_to_train();
    job.training.precision = precision;
    job.training.global_batch = 9;  // five microbatches, the last of one sequence
    Plan plan = training_plan(job, {{1, 2, 1}, {2, 1}}, {3, 2});
    for (const bool split_tokens : {false, true}) {
      plan.sequence_parallel = split_tokens;
      const auto set = [&](int most_delay, const StageRecompute& recompute) {
        Plan changed = plan;
        for (PlanPipeline& pipeline : changed.pipelines)
          for (size_t s = 0; s < pipeline.stages.size(); ++s) {
            pipeline.stages[s].weight_delay = std::min(most_delay, static_cast<int>(s));
            pipeline.stages[s].recompute = recompute;
          }
        return changed;
      };
      const auto whole = trained(job, plan, "thread");
      for (const int most_delay : {0, 1, 2})
        for (const Recompute level : {Recompute::none, Recompute::mlp, Recompute::full, Recompute::offload})
          EXPECT_EQ(trained(job, set(most_delay, level), "thread"), whole)
              << most_delay << " " << to_string(level);
    }
  }
}

TEST(RankTrainer, OffloadedStatesChangeNoBit) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    for (const char* optimizer : {"adamw", "muon", "sgd"}) {
      JobSpec job = job_to_train();
      job.training.precision = precision;
      job.training.global_batch = 9;
      job.training.optimizer.name = optimizer;
      job.training.ema.emplace();
      Plan plan = training_plan(job, {{1, 2, 1}, {2, 1}}, {3, 2});
      for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients}) {
        plan.zero = zero;
        Plan offloading = plan;
        for (PlanPipeline& pipeline : offloading.pipelines) pipeline.stages[1].offload = Offload::optimizer;
        EXPECT_EQ(trained(job, offloading, "thread"), trained(job, plan, "thread"))
            << optimizer << " " << to_string(precision) << " " << to_string(zero);
      }
    }
  }
}

TEST(RankTrainer, SplitTokensChangeNoBitOfTheFirstLoss) {
  for (const ModelFamily& family : model_families()) {
    for (const auto& pipelines : {std::vector<std::vector<int>>{{4, 2}}, {{2}, {1, 4}}}) {
      JobSpec job = sailor::small_job(family.name, /*layers=*/2, /*global_batch=*/7);
      job.model.hidden = 64;  // heads of 16: some families rotate a part
      job.model.sequence = 7;
      job.model.dropout = 0.2;
      Plan plan = training_plan(job, pipelines, pipelines.size() == 1 ? std::vector{4} : std::vector{3, 1});
      const auto whole = trained(job, plan, "thread");
      plan.sequence_parallel = true;
      const auto split = trained(job, plan, "thread");
      EXPECT_EQ(split[0][0], whole[0][0]) << family.name;
      EXPECT_NEAR(split[0][4], whole[0][4], 1e-5) << family.name;  // of the third step
      EXPECT_NEAR(split[0][5], whole[0][5], 1e-5) << family.name;
    }
  }
}

TEST(RankTrainer, AShardedOptimizerLeavesTheSameValues) {
  for (const char* plane : {"thread", "socket"}) {
    const JobSpec job = job_to_train();
    Plan plan = training_plan(job, {{2, 1}, {1}, {4}}, {2, 1, 1});
    const auto whole = trained(job, plan, plane);
    plan.zero = Zero::optimizer;
    const auto sharded = trained(job, plan, plane);
    ASSERT_EQ(sharded.size(), whole.size());
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      ASSERT_EQ(sharded[rank].size(), whole[rank].size());
      // The norm is added up in another order; losses and values are the same bits.
      for (std::size_t i = 0; i < whole[rank].size(); ++i) {
        if (i < 6 && i % 2 == 1) {
          EXPECT_NEAR(sharded[rank][i], whole[rank][i], 1e-12 * whole[rank][i]);
        } else {
          EXPECT_EQ(sharded[rank][i], whole[rank][i]) << plane << ", rank " << rank << ", " << i;
        }
      }
    }
  }
}

TEST(RankTrainer, AShardedOptimizerHoldsItsPartOfTheState) {
  const JobSpec job = job_to_train();
  Plan plan = training_plan(job, {{1}, {1}}, {2, 2});
  plan.zero = Zero::optimizer;
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2);
  std::vector<int64_t> parameters(2), updated(2);
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    const auto rank = static_cast<std::size_t>(factory.rank());
    for (const Parameter* parameter : trainer.parameters()) parameters[rank] += parameter->value.numel();
    for (const OptimizerSlice& slice : trainer.optimizer().slices()) updated[rank] += slice.count;
  });
  EXPECT_EQ(updated[0] + updated[1], parameters[0]);
  EXPECT_LE(std::abs(updated[0] - updated[1]), 1);
}

TEST(RankTrainer, A16BitModelTrainsFromMasterCopies) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    JobSpec job = job_to_train();
    job.training.precision = precision;
    job.training.optimizer.lr = 1e-4;  // updates below the spacing of many values
    const TokenData data = repeating_data(job);
    TestJob ranks("thread", 3);
    const Plan plan = training_plan(job, {{1, 1}, {1}}, {2, 2});
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      const StepResult first = trainer.step();
      EXPECT_EQ(first.loss_scale, precision == Precision::fp16 ? 65536 : 0);
      double last = first.loss;
      for (int i = 1; i < 60; ++i) last = trainer.step().loss;
      EXPECT_LT(last, first.loss);
      for (const Parameter* parameter : trainer.parameters())
        EXPECT_EQ(parameter->value.scalar_type(), precision == Precision::bf16 ? at::kBFloat16 : at::kHalf);
      for (const OptimizerSlice& slice : trainer.optimizer().slices())
        EXPECT_EQ(slice.gradient.scalar_type(), at::kFloat);
    });
  }
}

// Every rank skips the same steps. A skipped step counts as an iteration, but changes neither values nor the
// optimizer; clipping sees the gradient of the loss itself.
TEST(RankTrainer, AnOverflowSkipsTheUpdateOnEveryRank) {
  JobSpec job = job_to_train();
  job.training.precision = Precision::fp16;
  job.training.loss_scale = {.initial = int64_t{1} << 24, .hysteresis = 1};
  job.training.clip_grad_norm = 0.1;
  const TokenData data = repeating_data(job);
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients}) {
    Plan plan = training_plan(job, {{2, 1}, {1}}, {3, 1});
    plan.zero = zero;
    TestJob ranks("thread", num_ranks(plan));
    std::mutex mutex;
    std::map<int64_t, std::set<std::pair<bool, double>>> seen;
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      double expected_scale = 1 << 24;
      int64_t updates = 0;
      for (int64_t i = 0; i < 20; ++i) {
        std::vector<at::Tensor> before;
        for (const Parameter* parameter : trainer.parameters())
          before.push_back(parameter->value.detach().clone());
        const StepResult result = trainer.step();
        EXPECT_EQ(result.step, i);
        EXPECT_EQ(result.loss_scale, expected_scale);
        EXPECT_EQ(result.skipped, !std::isfinite(result.grad_norm));
        if (result.skipped) expected_scale /= 2;
        if (!result.skipped) ++updates;
        EXPECT_EQ(trainer.optimizer().steps_done(), updates);
        for (std::size_t p = 0; p < before.size(); ++p)
          EXPECT_TRUE(!result.skipped || at::equal(before[p], trainer.parameters()[p]->value));
        const std::lock_guard lock(mutex);
        seen[i].insert({result.skipped, result.loss_scale});
      }
      EXPECT_GT(updates, 5);
    });
    EXPECT_TRUE(seen[0].begin()->first);
    for (const auto& [i, of_ranks] : seen) EXPECT_EQ(of_ranks.size(), 1u) << "ranks disagree at step " << i;
  }
}

TEST(RankTrainer, OverflowsWithoutEndAtTheMinimumAreOneErrorOnEveryRank) {
  JobSpec job = job_to_train();
  job.training.precision = Precision::fp16;
  job.training.loss_scale.initial = job.training.loss_scale.minimum = int64_t{1} << 40;
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 3);
  const Plan plan = training_plan(job, {{1, 1}, {1}}, {2, 2});
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    for (int i = 0; i < 9; ++i) EXPECT_TRUE(trainer.step().skipped);
    try {
      trainer.step();
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("step 10: gradients overflowed in 10 steps in a row at "
                                                     "training.loss_scale.minimum (1099511627776)"));
    }
  });
}

TEST(RankTrainer, ARankThatVanishesInTheMiddleIsACommErrorOnAllOthers) {
  const JobSpec job = job_to_train();
  const Plan plan = training_plan(job, {{2, 2}, {2, 1}}, {2, 2});
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

// The same model and the same sequences under every plan, up to rounding.
TEST(RankTrainer, ValidationLossDoesNotDependOnThePlanAndChangesNothing) {
  const JobSpec job = job_to_train();
  const TokenData data = repeating_data(job);
  const std::vector<Plan> plans = {training_plan(job, {{1}}, {4}), training_plan(job, {{2, 1}, {1}}, {3, 1}),
                                   training_plan(job, {{1, 1, 2}, {2}}, {1, 3})};
  std::vector<double> losses, plain_losses;
  for (const Plan& plan : plans) {
    for (const bool evaluate : {true, false}) {
      TestJob ranks("thread", num_ranks(plan));
      std::mutex mutex;
      std::set<double> seen;
      ranks.run([&](CommFactory& factory) {
        RankTrainer trainer(job, plan, factory.rank(), factory, data);
        trainer.step();
        double loss = 0;
        // 17 sequences: two batches of seven, and three that leave microbatches empty or short.
        if (evaluate) loss = trainer.evaluate(data, 17);
        const double trained = trainer.step().loss;
        const std::lock_guard lock(mutex);
        seen.insert(evaluate ? loss : trained);
        if (evaluate) plain_losses.push_back(trained);
      });
      ASSERT_EQ(seen.size(), 1u);
      if (evaluate) {
        losses.push_back(*seen.begin());
      } else {
        EXPECT_EQ(*seen.begin(), plain_losses.back()) << "validation changed the training";
      }
    }
  }
  EXPECT_NEAR(losses[1], losses[0], 1e-5);
  EXPECT_NEAR(losses[2], losses[0], 1e-5);
  EXPECT_NEAR(losses[0], std::log(11.0), 0.3);
}

TEST(RankTrainer, GradientsAreClippedToTheGlobalNorm) {
  JobSpec job = job_to_train();
  job.training.optimizer.name = "sgd";
  const Plan plan = training_plan(job, {{2, 1}, {1}}, {3, 1});
  const TokenData data = repeating_data(job);
  std::mutex mutex;
  // Sum over all parameters of the squared change of one step, every parameter once.
  auto squared_step = [&](const std::optional<double>& clip) {
    job.training.clip_grad_norm = clip;
    TestJob ranks("thread", num_ranks(plan));
    double squares = 0, norm = 0;
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      std::vector<at::Tensor> before;
      for (const Parameter* parameter : trainer.parameters())
        before.push_back(parameter->value.detach().clone());
      const StepResult result = trainer.step();
      const std::lock_guard lock(mutex);
      norm = result.grad_norm;
      if (factory.rank() != 3) return;  // the pipeline that has the whole model on one rank
      for (std::size_t i = 0; i < before.size(); ++i)
        squares += (trainer.parameters()[i]->value.detach() - before[i]).pow(2).sum().item<double>();
    });
    EXPECT_GT(norm, 0.1) << "the norm is the one before clipping";
    return std::sqrt(squares) / job.training.optimizer.lr;
  };
  const double plain = squared_step(std::nullopt);
  EXPECT_NEAR(squared_step(plain * 2), plain, 1e-4 * plain) << "a norm below the limit is left alone";
  EXPECT_NEAR(squared_step(0.05), 0.05, 1e-4);
}

TEST(RankTrainer, ALossThatIsNotFiniteStopsEveryRankBeforeTheUpdate) {
  const JobSpec job = job_to_train();
  const Plan plan = training_plan(job, {{1, 1}, {1}}, {2, 2});
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", num_ranks(plan));
  std::mutex mutex;
  std::set<std::string> texts;
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    trainer.step();
    if (factory.rank() == 2) trainer.parameters()[0]->value.detach().fill_(std::nan(""));
    std::vector<at::Tensor> before;
    for (const Parameter* parameter : trainer.parameters())
      before.push_back(parameter->value.detach().clone());
    try {
      trainer.step();
      ADD_FAILURE() << "a loss of NaN is trained on";
    } catch (const std::runtime_error& error) {
      const std::lock_guard lock(mutex);
      texts.insert(error.what());
    }
    for (std::size_t i = factory.rank() == 2 ? 1 : 0; i < before.size(); ++i)
      EXPECT_TRUE(at::equal(before[i], trainer.parameters()[i]->value)) << trainer.parameters()[i]->name;
    EXPECT_EQ(trainer.optimizer().steps_done(), 1);
    EXPECT_EQ(trainer.next_step(), 1);
  });
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_THAT(
      *texts.begin(),
      ::testing::StartsWith("step 2: the loss is not a number on rank 2 (pipeline 1, stage 0); try a "));
}

TEST(RankTrainer, AllLearnInTheSameStepThatOneWantsToStop) {
  const JobSpec job = job_to_train();
  const Plan plan = training_plan(job, {{2, 1}, {1}}, {3, 1});
  const TokenData data = repeating_data(job);
  for (const int informed : {0, 3}) {
    TestJob ranks("thread", num_ranks(plan));
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      EXPECT_FALSE(trainer.step().stop);
      EXPECT_TRUE(trainer.step(factory.rank() == informed).stop) << "rank " << factory.rank();
      EXPECT_FALSE(trainer.step().stop);
    });
  }
}

TEST(RankTrainer, ATracedStepListsItsTasksAndOnlyThatStep) {
  const JobSpec job = job_to_train();
  const Plan plan = training_plan(job, {{1, 1}}, {4});
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", 2);
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    EXPECT_TRUE(trainer.step().tasks.empty());
    trainer.trace_next_step();
    const StepResult traced = trainer.step();
    std::map<TaskKind, std::vector<int>> microbatches;
    double forward_s = 0;
    for (const TracedTask& task : traced.tasks) {
      microbatches[task.kind].push_back(task.microbatch);
      EXPECT_LE(task.start_s, task.end_s);
      if (task.kind == TaskKind::forward) forward_s += task.end_s - task.start_s;
    }
    EXPECT_THAT(microbatches[TaskKind::forward], ::testing::ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(microbatches[TaskKind::backward], ::testing::ElementsAre(0, 1, 2, 3));
    EXPECT_NEAR(forward_s, traced.forward_s, 1e-5);  // the epoch's seconds have microseconds
    EXPECT_TRUE(trainer.step().tasks.empty());
  });
}

TEST(RankTrainer, WhatItCannotTrainIsRefusedBeforeAnyCommunication) {
  const JobSpec job = job_to_train();
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
  const Plan good = training_plan(job, {{1}, {1}}, {2, 2});
  Plan rounds = training_plan(job, {{1, 1, 1, 1}, {1, 1, 1, 1}}, {3, 1});
  rounds.interleave = 2;
  EXPECT_THAT(error_of(job, rounds), ::testing::HasSubstr("a multiple of 2 microbatches, not 3"));
  Plan chunks = training_plan(job, {{1, 1, 1}, {1, 1, 1, 1}}, {2, 2});
  chunks.interleave = 2;
  EXPECT_THAT(error_of(job, chunks), ::testing::HasSubstr("3 stages cannot form 2 chunks"));
  Plan selective = good;
  selective.pipelines[0].stages[0].recompute = Recompute::selective;
  EXPECT_THAT(error_of(job, selective), ::testing::HasSubstr("recompute \"selective\" is not supported"));
  Plan uncovered = good;
  uncovered.pipelines[1].stages[0].end_layer = 2;
  EXPECT_THAT(error_of(job, uncovered), ::testing::HasSubstr("pipeline 1"));
  JobSpec family = job;
  family.model.family = "nothing";
  EXPECT_THAT(error_of(family, good), ::testing::HasSubstr("model.family"));
}

}  // namespace
}  // namespace sailor
