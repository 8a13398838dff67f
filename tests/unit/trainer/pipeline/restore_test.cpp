#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "planner/plan/rank_layout.h"
#include "tests/unit/trainer/elastic_training.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/parallel/parameter_place.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

JobSpec job_to_restore(const std::string& family = "gpt2") {
  return scheduled_job(family, /*steps=*/40);
}

Plan restore_plan(const JobSpec& job, const std::vector<std::vector<int>>& pipelines,
                  const std::vector<int>& microbatches, Zero zero = Zero::none) {
  Plan plan = sailor::make_plan(job, /*microbatch=*/1, pipelines, microbatches);
  plan.zero = zero;
  return plan;
}

// Whole tensors by name (`3.qkv.weight`, `3.qkv.weight/m`, ...), as doubles.
using WholeState = std::map<std::string, std::vector<double>>;

// Adds what a rank has; what several have must be the same bits. Unknown elements are NaN.
void add_state(WholeState& whole, const JobSpec& job, const Plan& plan, int rank, RankTrainer& trainer) {
  const RankLayout layout(plan);
  const RankSlot& slot = layout.slots()[static_cast<std::size_t>(rank)];
  const auto specs = specs_by_name(job, layout);
  const auto add = [&](const std::string& name, const ParameterSpec& spec, int64_t first,
                       const at::Tensor& values) {
    std::vector<double>& elements = whole[name];
    elements.resize(static_cast<std::size_t>(real_elements(spec)), NAN);
    const at::Tensor wide = values.detach().reshape({-1}).to(at::kDouble);
    for (int64_t i = 0; i < wide.numel(); ++i) {
      const double value = wide.data_ptr<double>()[i];
      if (first + i >= real_elements(spec)) {
        EXPECT_EQ(value, 0) << name << ": padding";
        continue;
      }
      double& element = elements[static_cast<std::size_t>(first + i)];
      EXPECT_TRUE(std::isnan(element) || element == value) << name << ", element " << first + i;
      element = value;
    }
  };
  for (const Parameter* parameter : trainer.parameters()) {
    const ParameterSpec& spec = specs.at(parameter->name);
    add(parameter->name, spec, base_of(slot, spec), parameter->value);
  }
  Optimizer& optimizer = trainer.optimizer();
  for (std::size_t i = 0; i < optimizer.slices().size(); ++i) {
    const OptimizerSlice& slice = optimizer.slices()[i];
    const ParameterSpec& spec = specs.at(slice.name);
    for (const OptimizerState& state : optimizer.state(i))
      add(slice.name + "/" + state.name, spec, base_of(slot, spec) + slice.first, state.tensor);
  }
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());  // NaN is nothing's equal
}

class Restoring : public ::testing::TestWithParam<const char*> {
 protected:
  Restoring() : directory_(::testing::TempDir() + "sailor-restore-" + std::to_string(getpid())) {
    fs::remove_all(directory_);
    setenv("SAILOR_RUN_DIRECTORY", directory_.c_str(), 1);  // who takes part is of one run
  }
  ~Restoring() override { fs::remove_all(directory_); }

  // The state after each number of steps, of a training under the plan that nothing disturbs.
  struct Undisturbed {
    std::vector<double> losses;
    std::vector<WholeState> states;
  };
  static Undisturbed undisturbed(const JobSpec& job, const Plan& plan, int64_t steps) {
    const TokenData data = repeating_data(job);
    Undisturbed all;
    all.states.resize(static_cast<std::size_t>(steps) + 1);
    std::mutex mutex;
    ElasticTraining training(job, data, "thread");
    ElasticTraining::Generation generation{
        .plan = plan, .members = all_ranks(num_ranks(plan)), .until = steps};
    generation.restored = [&](int rank, RankTrainer& trainer) {
      const std::lock_guard lock(mutex);
      add_state(all.states[0], job, plan, rank, trainer);
    };
    generation.after = [&](int rank, RankTrainer& trainer, const StepResult& result) {
      const std::lock_guard lock(mutex);
      add_state(all.states[static_cast<std::size_t>(trainer.next_step())], job, plan, rank, trainer);
      if (rank == 0) all.losses.push_back(result.loss);
    };
    training.run(generation);
    return all;
  }

  struct Expected {
    Restored::From from = Restored::From::peers;
    int64_t steps_done = 0;
  };
  // After a loss in the first generation: a second one under `plan` goes on to `until`, from the very bits of
  // the undisturbed training.
  void goes_on(ElasticTraining& training, const JobSpec& job, const Plan& plan,
               const std::vector<int>& members, const Undisturbed& expected, const Expected& what,
               int64_t until, const std::set<int>& dropping = {}) {
    std::mutex mutex;
    WholeState state;
    ElasticTraining::Generation generation{
        .plan = plan, .members = members, .until = until, .dropping = dropping};
    generation.restored = [&](int rank, RankTrainer& trainer) {
      const std::lock_guard lock(mutex);
      add_state(state, job, plan, rank, trainer);
    };
    std::vector<double> losses;
    generation.after = [&](int rank, RankTrainer&, const StepResult& result) {
      const std::lock_guard lock(mutex);
      if (rank == 0) losses.push_back(result.loss);
    };
    const ElasticTraining::Outcome outcome = training.run(generation);
    EXPECT_FALSE(outcome.interrupted);
    ASSERT_EQ(outcome.restored.size(), members.size());
    for (const Restored& restored : outcome.restored) {
      EXPECT_STREQ(to_string(restored.from), to_string(what.from));
      EXPECT_EQ(restored.steps_done, what.steps_done);
    }
    const auto done = static_cast<std::size_t>(what.steps_done);
    const double bound = job.training.precision == Precision::bf16   ? 2e-2
                         : job.training.precision == Precision::fp16 ? 2.5e-3
                         : job.training.precision == Precision::fp64 ? 1e-12
                                                                     : 1e-5;
    for (const auto& [name, elements] : expected.states[done])
      EXPECT_TRUE(same(state[name], elements)) << name << " is not what it was after step " << done;
    ASSERT_EQ(losses.size(), static_cast<std::size_t>(until) - done);
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected.losses[done + i], bound * expected.losses[done + i])
          << "step " << done + i;
  }

  static std::map<int, int64_t> all_of(const std::vector<int>& ranks, int64_t steps) {
    std::map<int, int64_t> all;
    for (const int rank : ranks) all[rank] = steps;
    return all;
  }

  const std::string directory_;
};

TEST_P(Restoring, ALostPipelineCostsNoStepThatAllHadFinished) {
  for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16}) {
    SCOPED_TRACE(to_string(precision));
    JobSpec job = job_to_restore();
    job.training.precision = precision;
    const Plan before = restore_plan(job, {{2, 1}, {1, 2}}, {5, 3});
    const Undisturbed whole = undisturbed(job, before, 10);
    const TokenData data = repeating_data(job);
    // Rank 4 is of the second pipeline. Where it dies, and how many steps the others can save.
    struct Point {
      std::string name;
      Fault fault;
      int64_t steps_done;
    };
    const Point points[] = {
        {"in a forward", {Fault::Kind::dies_before, "link/", 0}, 4},
        {"in a backward", {Fault::Kind::dies_before, "link/", 5}, 4},
        {"while gradients are summed", {Fault::Kind::dies_before, "gradients/", 0}, 4},
        {"before its numbers are out", {Fault::Kind::dies_before, "world", 0}, 4},
        {"after the step was committed", {Fault::Kind::dies_after, "world", 0}, 5},
        {"at the beginning of the next step", {Fault::Kind::dies_before, "tp/", 0}, 4},
    };
    for (const Point& point : points) {
      if (precision != Precision::fp32 && point.steps_done == 4) continue;
      SCOPED_TRACE(point.name);
      ElasticTraining training(job, data, GetParam());
      const ElasticTraining::Outcome lost =
          training.run({.plan = before,
                        .members = all_ranks(6),
                        .until = 10,
                        .faults = {{4, point.fault}},
                        .fails_at = 4,
                        .notice = 300us,
                        .noticed_after = all_of({0, 1, 2, 3, 5}, point.steps_done)});
      EXPECT_TRUE(lost.interrupted);
      EXPECT_THAT(training.survivors(), ::testing::ElementsAre(0, 1, 2, 3, 5));
      EXPECT_LE(lost.all_have_done, point.steps_done);
      goes_on(training, job, restore_plan(job, {{1, 2}, {1}}, {4, 4}), {5, 0, 2, 1}, whole,
              {Restored::From::peers, point.steps_done}, 10);
    }
  }
}

TEST_P(Restoring, WhoLacksTheNumbersOfACommittedStepGetsThemFromTheOthers) {
  const JobSpec job = job_to_restore();
  for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients}) {
    const Plan before = restore_plan(job, {{1, 1}, {2}}, {4, 4}, zero);
    const Undisturbed whole = undisturbed(job, before, 12);
    const TokenData data = repeating_data(job);
    ElasticTraining training(job, data, GetParam());
    const ElasticTraining::Outcome lost =
        training.run({.plan = before,
                      .members = all_ranks(4),
                      .until = 12,
                      .faults = {{1, {Fault::Kind::loses_result, "world", 0}}},
                      .fails_at = 6,
                      .notice = 300ms});  // until the others have the numbers: they cannot finish the step
    EXPECT_TRUE(lost.interrupted);
    EXPECT_EQ(lost.all_have_done, 6) << "rank 1 could not update";
    EXPECT_EQ(training.process(0).steps_done, 7);
    goes_on(training, job, restore_plan(job, {{2}, {1, 1}}, {5, 3}, zero), {0, 3, 2, 1}, whole,
            {Restored::From::peers, 7}, 12);
  }
}

// With ZeRO-1 only one rank has what it updates.
TEST_P(Restoring, WhatNobodyElseHasComesFromCopiesInMemory) {
  for (const MemoryCopies copies : {MemoryCopies::neighbour, MemoryCopies::own, MemoryCopies::none}) {
    SCOPED_TRACE(static_cast<int>(copies));
    fs::remove_all(directory_);
    JobSpec job = job_to_restore();
    job.checkpoint.memory_copies = copies;
    Plan before = restore_plan(job, {{2, 1}, {1, 2}}, {5, 3}, Zero::optimizer);
    // Two ranks on each of three nodes; the second one is lost.
    int rank = 0;
    for (PlanPipeline& pipeline : before.pipelines) {
      for (PlanStage& stage : pipeline.stages)
        stage.node = "n" + std::to_string(rank / 2), rank += stage.shape.tp;
    }
    before.pipelines[1].stages[0].node = "n1";
    before.pipelines[1].stages[1].node = "n2";
    const Undisturbed whole = undisturbed(job, before, 10);
    const TokenData data = repeating_data(job);
    ElasticTraining training(job, data, GetParam(), directory_);
    const ElasticTraining::Outcome lost =
        training.run({.plan = before,
                      .members = all_ranks(6),
                      .until = 10,
                      .faults = {{2, {Fault::Kind::dies_before, "world", 0}}},
                      .dead_with = {3},
                      .fails_at = 6,
                      .save_every = 4,
                      .wait_for_saves = true});
    EXPECT_TRUE(lost.interrupted);
    ASSERT_THAT(training.survivors(), ::testing::ElementsAre(0, 1, 4, 5));
    const bool kept = copies == MemoryCopies::neighbour;
    if (kept) fs::remove_all(directory_ + "/step-4");
    goes_on(training, job, restore_plan(job, {{1, 2}, {1}}, {4, 4}, Zero::optimizer), {4, 0, 5, 1}, whole,
            {kept ? Restored::From::memory : Restored::From::checkpoint, 4}, 10);
  }
}

TEST_P(Restoring, WithoutAnyCopyTrainingBeginsAnew) {
  const JobSpec job = job_to_restore();
  const Plan before = restore_plan(job, {{1, 1}}, {8});
  const Undisturbed whole = undisturbed(job, before, 8);
  const TokenData data = repeating_data(job);
  ElasticTraining training(job, data, GetParam());
  training.run({.plan = before,
                .members = all_ranks(2),
                .until = 8,
                .faults = {{1, {Fault::Kind::dies_before, "link/", 2}}},
                .fails_at = 3});
  goes_on(training, job, restore_plan(job, {{2}}, {8}), {0, 2}, whole, {Restored::From::start, 0}, 8);
}

TEST_P(Restoring, ARankThatIsLostOnTheWayLeavesTheStateForTheNextTry) {
  const JobSpec job = job_to_restore();
  const Plan before = restore_plan(job, {{1, 1}, {2}, {1}}, {3, 3, 2});
  const Plan between = restore_plan(job, {{2, 1}, {1}}, {4, 4}),
             after = restore_plan(job, {{1}, {2}}, {4, 4});
  const Undisturbed whole = undisturbed(job, before, 10);
  const TokenData data = repeating_data(job);
  for (int operation = 0; operation < 8; ++operation) {
    SCOPED_TRACE(operation);
    for (const Fault::Kind kind : {Fault::Kind::dies_before, Fault::Kind::dies_after}) {
      ElasticTraining training(job, data, GetParam());
      training.run({.plan = before,
                    .members = all_ranks(5),
                    .until = 10,
                    .faults = {{2, {Fault::Kind::dies_after, "world", 0}}},
                    .fails_at = 5,
                    .noticed_after = all_of({0, 1, 3, 4}, 6)});
      training.run({.plan = between,
                    .members = {4, 3, 1, 0},
                    .faults = {{1, {kind, "world", operation}}},
                    .fails_in_restore = true,
                    .notice = 200us});
      if (training.process(3).alive) continue;  // there are fewer operations than that
      goes_on(training, job, after, {4, 1, 0}, whole, {Restored::From::peers, 6}, 10);
    }
  }
}

TEST_P(Restoring, GrowthTakesNothingFromTheDiskAndSpreadsTheWork) {
  JobSpec job = job_to_restore();
  job.model.hidden = 128;
  job.model.feed_forward = 512;
  const Plan before = restore_plan(job, {{1}, {1}}, {4, 4}),
             after = restore_plan(job, {{1}, {1}, {1}, {1}}, {2, 2, 2, 2});
  const Undisturbed whole = undisturbed(job, before, 4);
  const TokenData data = repeating_data(job);
  ElasticTraining training(job, data, GetParam());
  training.run({.plan = before, .members = {0, 1}, .until = 2});
  std::mutex mutex;
  WholeState state;
  ElasticTraining::Generation generation{.plan = after, .members = {2, 0, 3, 1}, .until = 2};
  generation.restored = [&](int rank, RankTrainer& trainer) {
    const std::lock_guard lock(mutex);
    add_state(state, job, after, rank, trainer);
  };
  const ElasticTraining::Outcome outcome = training.run(generation);
  for (const auto& [name, elements] : whole.states[2]) EXPECT_TRUE(same(state[name], elements)) << name;
  int64_t elements = 0, received = 0;
  for (const auto& [name, spec] : specs_by_name(job, RankLayout(after))) elements += real_elements(spec);
  int joined = 0;
  for (const Restored& restored : outcome.restored) {
    received += restored.bytes_received;
    joined += restored.bytes_received > 0 ? 1 : 0;
  }
  EXPECT_EQ(joined, 2) << "who has the state takes his own";
  EXPECT_EQ(received, 2 * 3 * 4 * elements) << "value, m and v, once to each that joins";
}

// Ranks without memory for two states free their own first: it comes from other replicas, else from copies or
// the newest checkpoint.
TEST_P(Restoring, WhoHasNoMemoryForTwoStatesGetsItFromElsewhere) {
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    for (const bool all : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, {}", to_string(precision), all ? "all" : "one pipeline"));
      fs::remove_all(directory_);
      JobSpec job = job_to_restore();
      job.training.precision = precision;
      job.checkpoint.memory_copies = MemoryCopies::none;
      const Plan before = restore_plan(job, {{1, 1}, {1, 1}}, {4, 4});
      const Undisturbed whole = undisturbed(job, before, 10);
      const TokenData data = repeating_data(job);
      ElasticTraining training(job, data, GetParam(), directory_);
      training.run(
          {.plan = before, .members = all_ranks(4), .until = 6, .save_every = 4, .wait_for_saves = true});
      goes_on(training, job, restore_plan(job, {{2}, {1, 1}}, {4, 4}), {2, 3, 0, 1}, whole,
              {all ? Restored::From::checkpoint : Restored::From::peers, all ? 4 : 6}, 10,
              all ? std::set<int>{0, 1, 2, 3} : std::set<int>{2, 3});
    }
  }
}

TEST_P(Restoring, TheLossScaleGoesOnUnderAnotherPlan) {
  JobSpec job = job_to_restore();
  job.training.precision = Precision::fp16;
  job.training.loss_scale = {
      .initial = int64_t{1} << 40, .window = 1000, .hysteresis = 1};  // every step overflows
  const TokenData data = repeating_data(job);
  ElasticTraining training(job, data, GetParam());
  std::mutex mutex;
  std::vector<double> scales;
  const auto run = [&](const Plan& plan, const std::vector<int>& members, int64_t until) {
    ElasticTraining::Generation generation{.plan = plan, .members = members, .until = until};
    generation.after = [&](int rank, RankTrainer&, const StepResult& result) {
      EXPECT_TRUE(result.skipped);
      const std::lock_guard lock(mutex);
      if (rank == 0) scales.push_back(result.loss_scale);
    };
    training.run(generation);
  };
  run(restore_plan(job, {{2}, {1, 1}}, {4, 4}), all_ranks(4), 3);
  run(restore_plan(job, {{1, 1}}, {8}), {3, 2}, 5);
  EXPECT_EQ(scales, (std::vector<double>{0x1p40, 0x1p39, 0x1p38, 0x1p37, 0x1p36}));
}

// Of a job that leaves the precision to its plans: bf16, then the remaining GPUs have only fp16, then back.
TEST_P(Restoring, AChangeOfPrecisionKeepsMastersAndMomentsAndStartsTheLossScaleAnew) {
  JobSpec job = job_to_restore();
  job.training.precision = Precision::bf16;
  job.training.fallback_precision = Precision::fp16;
  job.training.loss_scale.initial = 1024;
  const TokenData data = repeating_data(job);
  ElasticTraining training(job, data, GetParam());
  std::mutex mutex;
  WholeState state;
  std::vector<double> losses;
  const auto run = [&](const Plan& plan, const std::vector<int>& members, int64_t until, double loss_scale) {
    const WholeState before = std::exchange(state, {});
    int compared = 0;
    ElasticTraining::Generation generation{.plan = plan, .members = members, .until = until};
    generation.restored = [&](int rank, RankTrainer& trainer) {
      const at::ScalarType type = plan.precision == Precision::bf16 ? at::kBFloat16 : at::kHalf;
      for (const Parameter* parameter : trainer.parameters()) EXPECT_EQ(parameter->value.scalar_type(), type);
      if (before.empty()) return;
      const std::lock_guard lock(mutex);
      WholeState own;
      add_state(own, job, plan, rank, trainer);
      for (const auto& [name, elements] : own) {
        if (name.find('/') == std::string::npos) continue;  // what the optimizer has: masters and moments
        for (std::size_t i = 0; i < elements.size(); ++i)
          EXPECT_TRUE(std::isnan(elements[i]) || elements[i] == before.at(name)[i]) << name << " " << i;
        ++compared;
      }
    };
    generation.after = [&](int rank, RankTrainer& trainer, const StepResult& result) {
      EXPECT_EQ(result.loss_scale, loss_scale);
      EXPECT_FALSE(result.skipped);
      const std::lock_guard lock(mutex);
      if (rank == 0) losses.push_back(result.loss);
      if (trainer.next_step() == until) add_state(state, job, plan, rank, trainer);
    };
    for (const Restored& restored : training.run(generation).restored)
      EXPECT_STREQ(to_string(restored.from), before.empty() ? "start" : "peers");
    EXPECT_TRUE(before.empty() || compared > 10);
  };
  const auto in = [&](Precision precision, Plan plan) {
    plan.precision = precision;
    return plan;
  };
  run(in(Precision::bf16, restore_plan(job, {{2}, {1, 1}}, {4, 4})), all_ranks(4), 3, 0);
  run(in(Precision::fp16, restore_plan(job, {{1, 1}}, {8})), {3, 2}, 8, 1024);
  run(in(Precision::bf16, restore_plan(job, {{2}}, {8})), {2, 3}, 12, 0);
  EXPECT_LT(losses.back(), losses.front());
}

INSTANTIATE_TEST_SUITE_P(Planes, Restoring, ::testing::Values("thread", "socket"));

}  // namespace
}  // namespace sailor
