#include "planner/report/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sailor {
namespace {

TEST(Accuracy, ErrorsAreRelativeToWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(error_pct(1.1, 1), 10.000000000000009);
  EXPECT_DOUBLE_EQ(error_pct(3, 4), -25);
  EXPECT_DOUBLE_EQ(error_pct(4, 4), 0);
}

TEST(Accuracy, QuantilesInterpolate) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.95), 7);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 1), 4);
  // At 0.95 x 4 = 3.8 of 0 to 4.
  EXPECT_DOUBLE_EQ(quantile({10, 20, 30, 40, 50}, 0.95), 48);
}

TEST(Accuracy, TheSummaryIsOfAbsoluteErrors) {
  const ErrorSummary s = summarize({{110, 100}, {80, 100}, {100, 100}, {130, 100}});
  EXPECT_EQ(s.n, 4u);
  EXPECT_NEAR(s.mean_pct, 15, 1e-12);
  EXPECT_NEAR(s.median_pct, 15, 1e-12);
  EXPECT_NEAR(s.p95_pct, 20 + 0.85 * 10, 1e-12);
  EXPECT_NEAR(s.max_pct, 30, 1e-12);
  EXPECT_EQ(summarize({}).n, 0u);
  EXPECT_EQ(summarize({}).mean_pct, 0);
}

TEST(Accuracy, RankCorrelationByHand) {
  EXPECT_DOUBLE_EQ(*rank_correlation({{1, 10}, {2, 20}, {3, 30}}), 1);
  EXPECT_DOUBLE_EQ(*rank_correlation({{1, 30}, {2, 20}, {3, 10}}), -1);
  // 1 - 6 x (0 + 1 + 1 + 0) / (4 x 15)
  EXPECT_NEAR(*rank_correlation({{1, 1}, {2, 3}, {3, 2}, {4, 4}}), 0.8, 1e-12);
  // Only the order counts.
  EXPECT_NEAR(*rank_correlation({{1, 1}, {2, 300}, {3, 2}, {4, 1e9}}), 0.8, 1e-12);
  // Ties: ranks (1, 2.5, 2.5, 4) against (1, 2, 3, 4). Deviations from 2.5: products 2.25 + 0 + 0 + 2.25,
  // squares 4.5 and 5.
  EXPECT_NEAR(*rank_correlation({{1, 1}, {2, 2}, {2, 3}, {5, 4}}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
}

TEST(Accuracy, RankCorrelationOfNothingToOrderIsNone) {
  EXPECT_FALSE(rank_correlation({}));
  EXPECT_FALSE(rank_correlation({{1, 1}, {2, 2}}));
  EXPECT_FALSE(rank_correlation({{1, 1}, {1, 2}, {1, 3}}));
}

RunOutcome outcome(const std::string& group, double predicted_s, double measured_s, bool fits = true) {
  RunOutcome one;
  one.group = group;
  one.predicted_s = predicted_s;
  one.measured_s = measured_s;
  one.fits = fits;
  return one;
}

TEST(Accuracy, TheOracleGapIsWhatTheChoiceCosts) {
  // The second is chosen, the first was best: 25 %.
  EXPECT_DOUBLE_EQ(*oracle_gap_pct({outcome("a", 2, 4), outcome("a", 1, 5), outcome("a", 3, 6)}), 25);
  // Three groups: 25, 0 and 100 %; a group of one is no choice.
  std::vector<RunOutcome> all = {outcome("a", 2, 4), outcome("a", 1, 5), outcome("b", 1, 1),
                                 outcome("b", 2, 2), outcome("c", 1, 6), outcome("c", 2, 3),
                                 outcome("d", 1, 1)};
  EXPECT_DOUBLE_EQ(*oracle_gap_pct(all), 25);
  all.pop_back();
  all.erase(all.begin(), all.begin() + 2);
  EXPECT_DOUBLE_EQ(*oracle_gap_pct(all), 50);  // median of 0 and 100
  EXPECT_FALSE(oracle_gap_pct({outcome("a", 1, 1)}));
  EXPECT_FALSE(oracle_gap_pct({}));
}

TEST(Accuracy, WhatIsCalledTooLargeIsChosenOnlyWhenNothingElseIs) {
  EXPECT_DOUBLE_EQ(*oracle_gap_pct({outcome("a", 1, 4, false), outcome("a", 2, 5)}), 25);
  EXPECT_DOUBLE_EQ(*oracle_gap_pct({outcome("a", 1, 4, false), outcome("a", 2, 5, false)}), 0);
  // What failed when it ran is no measurement.
  RunOutcome failed = outcome("a", 0.5, 0.1);
  failed.ran = false;
  EXPECT_DOUBLE_EQ(*oracle_gap_pct({failed, outcome("a", 2, 4), outcome("a", 1, 5)}), 25);
}

TEST(Accuracy, PairsAreOfRunsThatWereMeasuredAndPredicted) {
  std::vector<RunOutcome> outcomes(4);
  outcomes[0] = outcome("a", 1, 2);
  outcomes[0].predicted_bytes = 3;
  outcomes[0].measured_bytes = 4;
  outcomes[1] = outcome("a", 1, 2);
  outcomes[1].ran = false;
  outcomes[2].measured_s = 1;
  outcomes[3].predicted_s = 1;
  ASSERT_EQ(time_pairs(outcomes).size(), 1u);
  EXPECT_EQ(time_pairs(outcomes)[0].measured, 2);
  ASSERT_EQ(memory_pairs(outcomes).size(), 1u);
  EXPECT_EQ(memory_pairs(outcomes)[0].predicted, 3);
}

MeasuredRun accuracy_record() {
  MeasuredRun record;
  record.name = "17";
  record.model = "m";
  record.plan.global_batch = 8;
  PlanStage a, b;
  a.gpu_type = "A";
  a.shape.tp = 2;
  b.gpu_type = "B";
  record.plan.pipelines = {{4, {a, b}}, {4, {a, b}}};
  record.iteration_s = {2, 4};
  return record;
}

TEST(Accuracy, OneChoosesAmongTheSameGpus) {
  MeasuredRun one = accuracy_record();
  EXPECT_EQ(choice_group(one), "m batch 8 4xA 2xB");
  MeasuredRun other = accuracy_record();
  std::swap(other.plan.pipelines[0].stages[0], other.plan.pipelines[0].stages[1]);
  EXPECT_EQ(choice_group(other), choice_group(one));
  other.plan.global_batch = 16;
  EXPECT_NE(choice_group(other), choice_group(one));
  // Chunks are no further GPUs.
  one.plan.interleave = 2;
  for (PlanPipeline& pipeline : one.plan.pipelines)
    pipeline.stages.insert(pipeline.stages.end(), {pipeline.stages[0], pipeline.stages[1]});
  EXPECT_EQ(choice_group(one), choice_group(accuracy_record()));
}

TEST(Accuracy, AnOutcomeHoldsBothSidesOfARun) {
  Prediction prediction;
  prediction.iteration_s = 3.3;
  prediction.fits = false;
  prediction.stages.resize(4);
  for (int i = 0; i < 4; ++i) {
    prediction.stages[static_cast<size_t>(i)].pipeline = i / 2;
    prediction.stages[static_cast<size_t>(i)].stage = i % 2;
    prediction.stages[static_cast<size_t>(i)].memory.weights_bytes = 100 + i % 2;
  }
  MeasuredRun run = accuracy_record();
  RunOutcome o = make_outcome(run, prediction);
  EXPECT_EQ(o.row, "17");
  EXPECT_EQ(*o.predicted_s, 3.3);
  EXPECT_EQ(*o.measured_s, 3);
  EXPECT_EQ(*o.predicted_bytes, 101);
  EXPECT_FALSE(o.measured_bytes);
  EXPECT_FALSE(o.fits);
  // Where the figure is of the first stage's ranks, theirs is predicted.
  run.memory_stage = 0;
  EXPECT_EQ(*make_outcome(run, prediction).predicted_bytes, 100);
  run.memory_stage = -1;
  EXPECT_EQ(*make_outcome(run, prediction).predicted_bytes, 101);
}

}  // namespace
}  // namespace sailor
