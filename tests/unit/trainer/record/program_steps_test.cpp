// What other programs tell of their steps.
#include "trainer/record/program_steps.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

struct ProgramStepsTest : testing::Test {
  ScratchDirectory scratch;
  ProgramSteps steps{scratch.path() + "/steps"};

  void write(int rank, const std::string& text) {
    std::ofstream(steps.directory() + "/rank-" + std::to_string(rank) + ".jsonl", std::ios::app) << text;
  }
};

TEST_F(ProgramStepsTest, StepsOfRankZeroAreTakenOnce) {
  EXPECT_THAT(steps.take(), IsEmpty());
  write(0, R"({"generation": 1, "step": 1, "loss": 2.5, "step_s": 0.25, "peak_bytes": 1000})"
           "\n");
  write(1, R"({"generation": 1, "step": 1, "loss": null, "step_s": 0.25, "peak_bytes": 2000})"
           "\n");
  const std::vector<StepReport> first = steps.take();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].step, 1);
  EXPECT_EQ(first[0].loss, 2.5);
  EXPECT_EQ(first[0].step_s, 0.25);
  EXPECT_EQ(first[0].peak_rss_bytes, 1000);
  EXPECT_THAT(steps.take(), IsEmpty());
}

TEST_F(ProgramStepsTest, ALineThatIsBeingWrittenIsTakenWhenItIsComplete) {
  write(0, R"({"generation": 1, "step": 3, "st)");
  EXPECT_THAT(steps.take(), IsEmpty());
  write(0, "ep_s\": 0.5}\n");
  ASSERT_THAT(steps.take(), SizeIs(1));
}

TEST_F(ProgramStepsTest, WhatIsNoReportIsSkipped) {
  for (const char* line :
       {"", "null", "[1]", "{", R"({"generation": 1, "step": 0, "step_s": 1})",
        R"({"generation": 0, "step": 1, "step_s": 1})", R"({"generation": 1, "step": "1", "step_s": 1})",
        R"({"generation": 1, "step": 1, "step_s": 0})", R"({"generation": 1, "step": 1, "step_s": -1})",
        R"({"generation": 1, "step": 1})", R"({"step": 1, "step_s": 1})", "\xff\xfe"})
    write(0, std::string(line) + "\n");
  EXPECT_THAT(steps.take(), IsEmpty());
  write(0, R"({"generation": 1, "step": 1, "step_s": 1, "loss": "low", "peak_bytes": -5})"
           "\n");
  const std::vector<StepReport> reports = steps.take();
  ASSERT_THAT(reports, SizeIs(1)) << "unusable values of others do not hide a step";
  EXPECT_EQ(reports[0].loss, std::nullopt);
  EXPECT_EQ(reports[0].peak_rss_bytes, 0);
}

TEST_F(ProgramStepsTest, TheLastReportsOfAGeneration) {
  for (const int rank : {0, 1, 12}) {
    for (const int generation : {1, 2})
      for (const int step : {4, 5})
        write(rank, "{\"generation\": " + std::to_string(generation) + ", \"step\": " + std::to_string(step) +
                        ", \"step_s\": 1, \"peak_bytes\": " + std::to_string(100 * rank + generation) +
                        "}\n");
  }
  std::ofstream(steps.directory() + "/rank-x.jsonl") << "{}\n";
  std::ofstream(steps.directory() + "/notes.txt") << "{}\n";
  std::map<int, int64_t> peaks;
  for (const StepReport& report : steps.last_of_all(1)) {
    EXPECT_EQ(report.step, 5);
    peaks[report.rank] = report.peak_rss_bytes;
  }
  EXPECT_EQ(peaks, (std::map<int, int64_t>{{0, 1}, {1, 101}, {12, 1201}}));
  EXPECT_THAT(steps.last_of_all(3), IsEmpty());
}

TEST_F(ProgramStepsTest, FilesOfAnEarlierRunAreRemoved) {
  write(0, R"({"generation": 1, "step": 1, "step_s": 1})"
           "\n");
  ProgramSteps again(steps.directory());
  EXPECT_THAT(again.take(), IsEmpty());
}

}  // namespace
}  // namespace sailor
