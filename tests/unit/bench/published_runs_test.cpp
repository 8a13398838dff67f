// Published runs: what the table refuses, and how well they are predicted without any measurement.
#include "tests/bench/published_runs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "planner/process/scratch_directory.h"
#include "planner/report/accuracy.h"
#include "tests/unit/planner/error_of.h"

namespace sailor::bench {
namespace {

using ::testing::HasSubstr;

const char* const kTable = SAILOR_SOURCE_DIR "/tests/bench/published_runs.csv";

std::string error_of_row(const std::string& row) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/runs.csv";
  std::ofstream(path)
      << "run,model,gpu_type,gpus,tp,pp,cp,interleave,microbatch,global_batch,recompute,zero1,"
         "zero_group,framework,"
         "options,iteration_s,tokens_per_s,stated_mfu_pct,ours_like,not_modelled,source\n"
      << row << "\n";
  return test::error_of([&] { load_published_runs(path); });
}

const std::string kModel =
    "\"{family: gpt2, layers: 24, hidden: 2048, heads: 16, sequence: 2048, vocabulary: 50264}\"";

TEST(PublishedRuns, ARunNeedsItsSourceAndAnMfuOfItsTime) {
  const std::string run = "a," + kModel + ",A100-80,8,1,1,,1,8,512,none,true,,sailor-nccl,,,169e3,";
  EXPECT_EQ(error_of_row(run + "61.5,true,,a paper"), "no error");
  EXPECT_THAT(error_of_row(run + "61.5,true,,"), HasSubstr("runs.csv:2: a published run needs its source"));
  EXPECT_THAT(error_of_row(run + "48,true,,a paper"),
              HasSubstr("its time is an MFU of 61.46 %, not 48.00 %"));
}

TEST(PublishedRuns, AreFasterWithAFasterFramework) {
  const Assumptions assumptions = load_assumptions(SAILOR_SOURCE_DIR "/etc");
  for (const PublishedRun& run : load_published_runs(kTable)) {
    if (run.framework != "llm-c") continue;
    const MfuRow row = predict_mfu(run, assumptions);
    EXPECT_GT(row.predicted_pct, row.ours_pct) << run.name;  // fewer passes over the same tensors
  }
}

TEST(PublishedRuns, ThoseLikeOursArePredictedWithin15Percent) {
  const Assumptions assumptions = load_assumptions(SAILOR_SOURCE_DIR "/etc");
  int compared = 0;
  for (const PublishedRun& run : load_published_runs(kTable)) {
    if (!run.is_like_ours) continue;
    const MfuRow row = predict_mfu(run, assumptions);
    EXPECT_LE(std::abs(error_pct(row.predicted_pct, row.published_pct)), kMostErrorPct) << run.name;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace sailor::bench
