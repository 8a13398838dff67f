#include "planner/history/run_summary.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

TEST(RunSummary, IsReadAsItWasWritten) {
  const RunSummary written{.job_id = "42",
                           .status = "failed",
                           .error = "rank 3: no answer",
                           .next_job = "43",
                           .moved = "planned for a1, runs on a2",
                           .emulated = true,
                           .steps = 7,
                           .first_loss = 5.5,
                           .last_loss = 4.25,
                           .validation = {{"", 4.5}},
                           .unigram_entropy = 6.5,
                           .catalog = "/etc/sailor/catalog.yaml",
                           .profiles = {"/srv/profiles", "/home/me/profiles"},
                           .measured_iteration_s = 0.5,
                           .mean_iteration_s = 0.625,
                           .predicted_iteration_s = 0.25,
                           .tokens_per_s = 1024,
                           .mfu = 0.375,
                           .training_s = 3.5,
                           .ranks = {{.rank = 3,
                                      .node = "n1",
                                      .gpu_type = "A",
                                      .pipeline = 1,
                                      .stage = 2,
                                      .peak_rss_bytes = 1 << 20,
                                      .max_in_flight = 4,
                                      .in_flight_limit = 5,
                                      .paced_tasks = 6,
                                      .overrun_tasks = 2,
                                      .overrun_s = 0.125,
                                      .paced_s = 1.5}}};
  const std::string file = test::scratch_directory("run-summary") + "/summary.json";
  std::ofstream(file) << summary_json(written);
  const std::optional<RunSummary> read = read_run_summary(file);
  ASSERT_TRUE(read);
  EXPECT_EQ(summary_json(*read), summary_json(written));
  EXPECT_EQ(read->ranks.at(0).peak_rss_bytes, 1 << 20);
  EXPECT_EQ(read->profiles, written.profiles);
}

TEST(RunSummary, WhatIsNotKnownStaysSo) {
  const std::string file = test::scratch_directory("run-summary-empty") + "/summary.json";
  EXPECT_FALSE(read_run_summary(file)) << "there is no such file";
  std::ofstream(file) << summary_json({});
  const std::optional<RunSummary> read = read_run_summary(file);
  ASSERT_TRUE(read);
  EXPECT_EQ(summary_json(*read), summary_json({}));
  EXPECT_FALSE(read->first_loss);
}

TEST(RunSummary, PredictionErrorIsRelativeToTheMeasurement) {
  RunSummary summary;
  EXPECT_EQ(summary.prediction_error_pct(), std::nullopt);
  summary.measured_iteration_s = 2;
  summary.predicted_iteration_s = 1;
  EXPECT_DOUBLE_EQ(summary.prediction_error_pct().value(), -50);
}

TEST(MeasuredRun, OfASummaryHasTheMedianStepAndTheFullestRank) {
  JobSpec job;
  job.model.family = "gpt2";
  job.model.name = "small";
  job.model.layers = 2;
  job.model.hidden = 16;
  job.model.heads = 2;
  job.model.feed_forward = 64;
  job.model.sequence = 8;
  job.model.vocabulary = 32;
  RunSummary summary;
  summary.job_id = "42";
  summary.status = "finished";
  summary.measured_iteration_s = 0.5;
  summary.ranks.resize(2);
  summary.ranks[0].peak_rss_bytes = 5;
  summary.ranks[1].peak_rss_bytes = 9;
  const MeasuredRun run = measured_run(summary, job, {});
  EXPECT_EQ(run.name, "42");
  EXPECT_TRUE(run.ran);
  EXPECT_EQ(run.measured_s(), 0.5);
  EXPECT_EQ(run.measured_bytes(), 9);
}

}  // namespace
}  // namespace sailor
