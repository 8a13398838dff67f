#include "trainer/record/training_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace sailor {
namespace {

TEST(TrainingProgress, NotesStandBetweenTheStepsAndSayHowFarTrainingIs) {
  TrainingProgress training(2);
  EXPECT_EQ(training.last_step(), 0);
  training.noted({.rank = 0, .step = 7, .text = "going on after step 7"});
  EXPECT_EQ(training.last_step(), 7);
  training.reported({.rank = 0, .step = 8, .step_s = 1});
  training.noted({.rank = 1, .step = 8, .text = "the same, as another rank has it"});
  training.noted({.rank = 0, .step = 8, .text = "written"});
  const auto progress = training.take();
  ASSERT_EQ(progress.size(), 3u);
  EXPECT_EQ(std::get<Note>(progress[0]).text, "going on after step 7");
  EXPECT_EQ(std::get<StepReport>(progress[1]).step, 8);
  EXPECT_EQ(std::get<Note>(progress[2]).text, "written");
  EXPECT_EQ(training.last_step(), 8);
  EXPECT_EQ(training.steps_done(), 1) << "of this run";
}

TEST(TrainingProgress, ATraceIsCompleteWhenEveryRankHasReportedItsTasks) {
  TrainingProgress training(2);
  const TracedTask task{TaskKind::forward, 3, 1.5, 2};
  training.reported({.rank = 0, .step = 7, .tasks = {task}});
  training.reported({.rank = 0, .step = 8});
  EXPECT_EQ(training.take_trace(), std::nullopt);
  training.reported({.rank = 1, .step = 7, .tasks = {task, task}});
  const auto trace = training.take_trace();
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->at(1).size(), 2u);
  EXPECT_EQ(training.take_trace(), std::nullopt);
}

TEST(TrainingProgress, AStepThatOnlyAnotherRankReportedIsProgressWhenRankZeroIsGone) {
  TrainingProgress training(2);
  training.reported({.rank = 0, .step = 1, .loss = 5});
  training.reported({.rank = 1, .step = 1, .loss = 5});
  training.reported({.rank = 1, .step = 2, .loss = 4});
  EXPECT_EQ(training.take().size(), 1u);
  training.begin_generation(2);
  const auto progress = training.take();
  ASSERT_EQ(progress.size(), 1u);
  EXPECT_EQ(std::get<StepReport>(progress[0]).step, 2);
}

TEST(TrainingProgress, TimesAreOfTheGenerationInForceAndLossesOfTheRun) {
  TrainingProgress training(1);
  training.reported({.step = 1, .loss = 5, .validation = {{"", 6}}, .step_s = 8});
  training.begin_generation(1);
  training.reported({.step = 2, .loss = 4, .step_s = 2});
  RunSummary summary;
  training.summarize(100, summary);
  EXPECT_EQ(summary.steps, 2);
  EXPECT_EQ(summary.first_loss, 5);
  EXPECT_EQ(summary.last_loss, 4);
  EXPECT_EQ(summary.validation, (ValidationLosses{{"", 6}}));
  EXPECT_EQ(summary.measured_iteration_s, 2);
  EXPECT_EQ(summary.tokens_per_s, 50);
  EXPECT_EQ(summary.training_s, 10);
  ASSERT_NE(training.last_report(0), nullptr);
  EXPECT_EQ(training.last_report(0)->step, 2);
  EXPECT_EQ(training.last_report(1), nullptr);
}

TEST(TrainingProgress, EarlierStartsInTheSameDirectoryArePartOfTheRun) {
  TrainingProgress training(1);
  std::vector<StepMetrics> earlier(3);
  for (size_t i = 0; i < earlier.size(); ++i) {
    earlier[i].step = static_cast<int64_t>(i) + 1;
    earlier[i].loss = 9 - static_cast<double>(i);
    earlier[i].step_s = 4;
  }
  earlier[0].validation[""] = 8;
  training.continue_from(earlier);
  training.noted({.rank = 0, .step = 2, .text = "resuming after step 2"});
  RunSummary resumed;
  training.summarize(100, resumed);
  EXPECT_EQ(resumed.steps, 2) << "step 3 was not saved";
  EXPECT_EQ(resumed.last_loss, 8);
  training.reported({.step = 3, .loss = 6, .step_s = 2});
  RunSummary summary;
  training.summarize(100, summary);
  EXPECT_EQ(summary.steps, 3);
  EXPECT_EQ(summary.first_loss, 9);
  EXPECT_EQ(summary.last_loss, 6);
  EXPECT_EQ(summary.validation, (ValidationLosses{{"", 8}}));
  EXPECT_EQ(summary.training_s, 10);
  EXPECT_EQ(summary.measured_iteration_s, 2) << "of this start";
  EXPECT_EQ(training.steps_done(), 1);
}

TEST(TrainingProgress, TheLastSaveIsMeasured) {
  TrainingProgress training(1);
  EXPECT_FALSE(training.save_s());
  training.noted({.step = 2, .text = "written", .save_s = 1.5});
  training.noted({.step = 2, .text = "another line"});
  EXPECT_EQ(training.save_s(), 1.5);
}

}  // namespace
}  // namespace sailor
