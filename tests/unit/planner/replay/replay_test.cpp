// Replays by hand: four one-GPU nodes, a model whose pace follows from the number of pipelines.
#include "planner/replay/replay.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

struct Replay : ::testing::Test {
  test::Instance in = test::empty_instance(2, 8);
  PlanOptions options;
  ReplayInput input;
  ReplayOptions costs;

  Replay() {
    in.add_type("t", 0.5, int64_t{1} << 40, 3.6, {1, 2, 4, 8}, {1});
    in.job.training.steps = 1'000'000;
    options.cost_model = CostModel::published;
    options.space = SearchSpace::paper;
    input.end_s = 100'000;
    input.cluster = [this] { return TraceCluster({{"t", "z1", "r1", 1}}, in.snapshot, 7); };
    costs.reconfigure_s = 10;
    costs.restart_s = 100;
    costs.checkpoint_steps = 100;
  }

  ReplayOutcome outcome(ReplayPolicy policy) {
    const ReplayOutcome o = replay(in.context(), options, input, costs, {policy}).front();
    EXPECT_NEAR(o.trained_s + o.lost_s + o.changing_s + o.waiting_s, o.finished_at_s.value_or(input.end_s),
                1e-3)
        << to_string(policy);
    return o;
  }
};

TEST_F(Replay, AloneOnAQuietClusterItTrainsAllTheTime) {
  input.changes = {{0, {4}}};
  const ReplayOutcome o = outcome(ReplayPolicy::elastic);
  EXPECT_EQ(o.changes, 0);
  EXPECT_DOUBLE_EQ(o.trained_s, input.end_s);
  ASSERT_EQ(o.events.size(), 1u);
  EXPECT_EQ(o.steps, static_cast<int64_t>(input.end_s / o.events[0].iteration_s));
  // 4 GPUs at 3.6 USD per hour.
  EXPECT_NEAR(o.usd, 4 * 3.6 / 3600 * input.end_s, 0.01 * o.usd);
}

TEST_F(Replay, ALossCostsTheElasticJobAStepAndTheOthersTheirTimeSinceTheCheckpoint) {
  input.changes = {{0, {4}}, {50'000, {3}}};
  const ReplayOutcome elastic = outcome(ReplayPolicy::elastic), restart = outcome(ReplayPolicy::restart),
                      full = outcome(ReplayPolicy::full_set), no_cost = outcome(ReplayPolicy::no_cost);
  ASSERT_EQ(elastic.events.size(), 2u);
  EXPECT_EQ(elastic.events[1].what, ReplayEvent::What::shrunk);
  EXPECT_EQ(elastic.lost_steps, 0);
  EXPECT_LE(elastic.lost_s, elastic.events[0].iteration_s);
  EXPECT_DOUBLE_EQ(elastic.changing_s, costs.reconfigure_s);

  const auto before = static_cast<int64_t>(50'000 / restart.events[0].iteration_s);
  EXPECT_EQ(restart.lost_steps, before % costs.checkpoint_steps);
  EXPECT_DOUBLE_EQ(restart.changing_s, costs.restart_s);

  EXPECT_DOUBLE_EQ(full.waiting_s, 50'000);
  EXPECT_EQ(full.steps, before - before % costs.checkpoint_steps);

  EXPECT_GT(elastic.steps, restart.steps);
  EXPECT_GT(restart.steps, full.steps);
  EXPECT_GE(no_cost.steps, elastic.steps);
}

TEST_F(Replay, StateThatNobodyHoldsAnyMoreComesFromTheCheckpoint) {
  input.changes = {{0, {4}}, {50'000, {0}}, {60'000, {4}}};
  const ReplayOutcome o = outcome(ReplayPolicy::elastic);
  EXPECT_DOUBLE_EQ(o.waiting_s, 10'000);
  EXPECT_EQ(o.lost_steps, static_cast<int64_t>(50'000 / o.events[0].iteration_s) % costs.checkpoint_steps);
  ASSERT_EQ(o.events.size(), 3u);
  EXPECT_EQ(o.events[1].what, ReplayEvent::What::waiting);
}

TEST_F(Replay, NewGpusAreTakenUpWhereThatPays) {
  input.changes = {{0, {2}}, {1'000, {4}}};
  const ReplayOutcome cheap = outcome(ReplayPolicy::elastic);
  ASSERT_EQ(cheap.events.size(), 2u);
  EXPECT_EQ(cheap.events[1].what, ReplayEvent::What::grown);
  EXPECT_LT(cheap.events[1].iteration_s, cheap.events[0].iteration_s);
  EXPECT_EQ(cheap.lost_steps, 0);

  costs.reconfigure_s = 1e6;
  const ReplayOutcome dear = outcome(ReplayPolicy::elastic);
  EXPECT_EQ(dear.events[1].what, ReplayEvent::What::kept);
  EXPECT_EQ(dear.changes, 0);

  // Hardly anything is left to do.
  costs.reconfigure_s = 10;
  in.job.training.steps = static_cast<int>((1'000 + 5) / cheap.events[0].iteration_s);
  EXPECT_EQ(outcome(ReplayPolicy::elastic).events[1].what, ReplayEvent::What::kept);
}

TEST_F(Replay, AGpuThatThePlanDoesNotUseIsNoLoss) {
  in.job.resources.max_gpus = {{"t", 2}};
  input.changes = {{0, {4}}, {100, {3}}, {200, {4}}, {300, {3}}, {400, {4}}, {500, {2}}};
  const ReplayOutcome o = outcome(ReplayPolicy::no_cost);
  for (const ReplayEvent& event : o.events) EXPECT_EQ(event.lost_steps, 0);
  EXPECT_LT(o.changes, 5) << "half of the GPUs are not in use";
}

TEST_F(Replay, ItEndsWithTheLastStep) {
  input.changes = {{0, {4}}, {50'000, {3}}};
  in.job.training.steps = 100;
  const ReplayOutcome o = outcome(ReplayPolicy::elastic);
  EXPECT_EQ(o.steps, 100);
  ASSERT_TRUE(o.finished_at_s);
  EXPECT_NEAR(*o.finished_at_s, 100 * o.events[0].iteration_s, 1e-6);
  EXPECT_EQ(o.events.back().what, ReplayEvent::What::finished);
}

TEST_F(Replay, TheSameSeedGivesTheSame) {
  input.changes = {{0, {4}}, {1'000, {2}}, {2'000, {3}}, {9'000, {1}}, {20'000, {4}}};
  const ReplayOutcome a = outcome(ReplayPolicy::elastic), b = outcome(ReplayPolicy::elastic);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.usd, b.usd);
}

}  // namespace
}  // namespace sailor
