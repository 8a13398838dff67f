#include "planner/simulator/iteration_shares.h"

#include <gtest/gtest.h>

#include "planner/search/search.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

test::Instance two_nodes() {
  test::Instance in = test::empty_instance(6, 16);
  in.add_type("fast", 0.01, 4'000'000'000, 4);
  in.add_type("slow", 0.03, 4'000'000'000, 1);
  in.add_node("f0", "fast", 2);
  in.add_node("s0", "slow", 2);
  return in;
}

TEST(IterationShares, AddUpToTheIterationOfEveryPlanThatIsFound) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const test::Instance in = test::random_instance(seed, 400'000'000);
    for (const CostModel model : {CostModel::native, CostModel::published}) {
      PlanOptions options;
      options.time_limit_s = 0.2;
      options.cost_model = model;
      if (model == CostModel::published) options.space = SearchSpace::paper;
      for (const Candidate& candidate : search(in.context(), options).candidates) {
        const IterationShares shares =
            iteration_shares(own_framework(), candidate.plan, candidate.prediction, model);
        const double whole_s = candidate.prediction.iteration_s;
        EXPECT_NEAR(shares.total_s(), whole_s, 1e-9 * whole_s) << "seed " << seed;
        for (double part : {shares.compute_s, shares.bubble_s, shares.p2p_s, shares.sync_s, shares.update_s,
                            shares.overhead_s})
          EXPECT_GE(part, -1e-9 * whole_s) << "seed " << seed << ", " << to_string(model);
      }
    }
  }
}

TEST(IterationShares, AddUpWithBlockingSendsThatAreBufferedOrNot) {
  test::Instance in = two_nodes();
  in.set_network(0, 1e7);
  const Plan plan = test::make_plan(in, 1, {{{0, 2, "fast", 1}, {2, 5, "fast", 1}, {5, 8, "fast", 1}}});
  FrameworkStyle style;
  style.sends = FrameworkStyle::Sends::blocking_in_turn;
  for (const int64_t buffered : {0, 1 << 30}) {
    style.buffered_message_bytes = buffered;
    const Prediction p = simulate({in.job, in.snapshot, in.catalog, in.profiles, style}, plan);
    EXPECT_NEAR(iteration_shares(style, plan, p).total_s(), p.iteration_s, 1e-9) << buffered;
  }
}

TEST(IterationShares, OneStageHasNoBubble) {
  const test::Instance in = two_nodes();
  const Plan plan = test::make_plan(in, 1, {{{0, 8, "fast", 1}}, {{0, 8, "fast", 1}}});
  const IterationShares shares = iteration_shares(own_framework(), plan, simulate(in.context(), plan));
  EXPECT_EQ(shares.bubble_s, 0);
  EXPECT_EQ(shares.p2p_s, 0);
  EXPECT_EQ(shares.bottleneck(), "compute");
}

TEST(IterationShares, FewMicrobatchesAreBubbleAndSlowLinksArePeerToPeer) {
  test::Instance in = two_nodes();
  in.job.training.global_batch = 2;
  const Plan plan =
      test::make_plan(in, 2, {{{0, 2, "fast", 1}, {2, 4, "fast", 1}, {4, 6, "fast", 1}, {6, 8, "fast", 1}}});
  EXPECT_EQ(iteration_shares(own_framework(), plan, simulate(in.context(), plan)).bottleneck(), "bubble");
  in.set_network(1e-5, 1e6);
  const IterationShares slow = iteration_shares(own_framework(), plan, simulate(in.context(), plan));
  EXPECT_EQ(slow.bottleneck(), "p2p");
  EXPECT_GT(slow.bottleneck_part(), 0.5);
}

TEST(IterationShares, TheSlowestPipelineAndItsBusiestStageBind) {
  const test::Instance in = two_nodes();
  const Plan plan = test::make_plan(
      in, 1, {{{0, 4, "fast", 1}, {4, 8, "fast", 1}}, {{0, 3, "slow", 1}, {3, 8, "slow", 1}}});
  const Prediction prediction = simulate(in.context(), plan);
  const IterationShares shares = iteration_shares(own_framework(), plan, prediction);
  EXPECT_EQ(shares.pipeline, 1);
  EXPECT_EQ(shares.stage, 1);
  EXPECT_NEAR(shares.compute_s, prediction.stages[3].busy_fraction * prediction.iteration_s, 1e-9);
}

}  // namespace
}  // namespace sailor
