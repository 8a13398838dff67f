#include "trainer/record/step_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/unit/trainer/record/step_report.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StepLine, IsOneLineWithEveryFigure) {
  StepFacts facts{.steps = 1000, .tokens = 4096};
  EXPECT_EQ(step_line(kStepReport, facts),
            "step   12/1000 | loss 5.3120 | norm 1.210 | lr 3.0e-04 | 800 ms | 5120 tok/s | MFU -");
  facts.flops = 1e12;
  facts.peak_flops = 5e12;
  StepReport report = kStepReport;
  report.validation[""] = 5.4;
  EXPECT_EQ(
      step_line(report, facts),
      "step   12/1000 | loss 5.3120 | val 5.4000 (perplexity 221.4) | norm 1.210 | lr 3.0e-04 | 800 ms | "
      "5120 tok/s | MFU 25.0 %");
}

TEST(StepLine, SaysTheLossScaleAndThatAStepWasSkipped) {
  const StepFacts facts{.steps = 1000, .tokens = 4096};
  StepReport report = kStepReport;
  report.loss_scale = 65536;
  EXPECT_EQ(
      step_line(report, facts),
      "step   12/1000 | loss 5.3120 | norm 1.210 | lr 3.0e-04 | scale 65536 | 800 ms | 5120 tok/s | MFU -");
  EXPECT_THAT(step_json(report, facts), HasSubstr("\"loss_scale\":65536.0,\"skipped\":false"));
  report.gradient_norm.reset();
  report.skipped = true;
  EXPECT_THAT(step_line(report, facts),
              HasSubstr("loss 5.3120 | lr 3.0e-04 | scale 65536 (overflow, skipped) |"));
  EXPECT_THAT(step_json(report, facts), HasSubstr("\"gradient_norm\":null"));
  EXPECT_THAT(step_json(report, facts), HasSubstr("\"skipped\":true"));
  EXPECT_THAT(step_json(kStepReport, facts), Not(HasSubstr("skipped"))) << "in fp32 nothing is scaled";
}

TEST(StepLine, SaysThatAStepWasSkippedForASpike) {
  const StepFacts facts{.steps = 1000, .tokens = 4096};
  StepReport report = kStepReport;
  report.spikes = 3;
  EXPECT_THAT(step_line(report, facts), Not(HasSubstr("skipped")));
  EXPECT_THAT(step_json(report, facts), HasSubstr("\"spikes\":3,\"skipped\":false"));
  report.skipped = true;
  EXPECT_THAT(step_line(report, facts), HasSubstr("lr 3.0e-04 (spike, skipped) |"));
  report.gradient_norm.reset();
  EXPECT_THAT(step_line(report, facts), HasSubstr("lr 3.0e-04 (spike, skipped) |"));
  report.loss_scale = 1024;
  EXPECT_THAT(step_line(report, facts), HasSubstr("scale 1024 (overflow, skipped) |"));
}

TEST(StepJson, HasWhatTheJobAsksFor) {
  const StepFacts facts{.steps = 1000, .tokens = 4096};
  EXPECT_THAT(step_json(kStepReport, facts), Not(HasSubstr("z_loss")));
  EXPECT_THAT(step_json(kStepReport, facts), Not(HasSubstr("layer")));
  StepReport report = kStepReport;
  report.z_loss = 0.25;
  report.layer_norms = {0.5, 2};
  report.gradient_signal = -0.5;
  report.gradient_noise = 4;
  EXPECT_THAT(step_json(report, facts), HasSubstr("\"gradient_noise\":{\"signal\":-0.5,\"noise\":4.0}"));
  EXPECT_THAT(step_json(report, facts), HasSubstr("\"z_loss\":0.25"));
  EXPECT_THAT(step_json(report, facts), HasSubstr("\"layer_gradient_norms\":[0.5,2.0]"));
}

TEST(StepCsv, HasAColumnForEveryNameAndNothingForWhatIsNotKnown) {
  const StepFacts facts{.steps = 1000, .tokens = 4096};
  EXPECT_EQ(step_csv(kStepReport, facts), "12,5.312,,1.21,0.0003,0.8,5120,,99");
  StepReport diverged = kStepReport;
  diverged.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(step_csv(diverged, facts), "12,,,1.21,0.0003,0.8,5120,,99");
  auto columns = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  EXPECT_EQ(columns(step_csv_header()), columns(step_csv(kStepReport, facts)));
}

TEST(SteadyIteration, ShortRunsStillHaveAMedian) {
  EXPECT_EQ(steady_iteration_s({}), std::nullopt);
  EXPECT_EQ(steady_iteration_s({4}), 4);
  EXPECT_EQ(steady_iteration_s({9, 9, 4}), 4);
  EXPECT_EQ(steady_iteration_s({9, 9, 9, 1, 3}), 2);
}

TEST(SteadyIteration, TheMeanLeavesTheSameWarmUpOut) {
  EXPECT_EQ(mean_iteration_s({}), std::nullopt);
  EXPECT_EQ(mean_iteration_s({9, 9, 9, 1, 2, 6}), 3);
}

}  // namespace
}  // namespace sailor
