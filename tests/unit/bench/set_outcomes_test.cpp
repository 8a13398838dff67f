#include "tests/bench/set_outcomes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "tests/convert/convert.h"

namespace sailor::bench {
namespace {

TEST(SetOutcomes, PublishedRunsOfOneMicrobatchAreWithin15Percent) {
  const char* reference = std::getenv("SAILOR_REFERENCE");
  if (reference == nullptr || !std::filesystem::exists(reference))
    GTEST_SKIP() << "skipped: no data (SAILOR_REFERENCE)";
  const std::string etc = SAILOR_SOURCE_DIR "/etc";
  const Assumptions plain = load_assumptions(etc);
  const SetOutcomes outcomes =
      outcomes_of("sailor", convert::convert("sailor", std::string(reference) + "/validation_public"),
                  calibrated("sailor", plain, etc), predictor("sailor", reference, plain));
  ASSERT_EQ(outcomes.timed_apart.size(), 3u);
  for (const RunOutcome& run : outcomes.timed_apart)
    EXPECT_LE(std::abs(error_pct(*run.predicted_s, *run.measured_s)), 15) << run.row;
  // They were not fitted at the expense of the others.
  for (const auto& [part, runs] : outcomes.parts) EXPECT_LE(summarize(time_pairs(runs)).mean_pct, 2) << part;
}

// The mean error over the ten tenths that may calibrate; what `sailor calibrate` promises.
TEST(SetOutcomes, ATenthOfTheRunsOfAFrameworkCalibratesTheOthers) {
  const char* reference = std::getenv("SAILOR_REFERENCE");
  const std::string data = std::string(reference == nullptr ? "" : reference) + "/../measured/";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "skipped: no data (SAILOR_REFERENCE/../measured)";
  const Assumptions plain = load_assumptions(SAILOR_SOURCE_DIR "/etc");
  const std::tuple<const char*, const char*, double> kSets[] = {
      {"vtrain-single", "vtrain_ground_truth_single.csv", 7},
      {"vtrain-multi", "vtrain_ground_truth_multi.csv", 8},
      {"mosaic", "mosaic_llmfoundry_mfu.csv", 7.5},
      {"bigscience", "bigscience_megatron_deepspeed.csv", 8.5}};
  for (const auto& [set, file, most_pct] : kSets) {
    const std::vector<MeasuredRun> records = convert::convert(set, data + file);
    double mean_pct = 0;
    for (size_t k = 0; k < 10; ++k) {
      const auto frameworks = calibrated_on_tenth(set, records, plain, predictor(set, "", plain), k);
      ASSERT_EQ(frameworks.size(), 1u) << set;
      const CalibratedOnTenth& of = frameworks.front();
      mean_pct += summarize(time_pairs(of.calibrated)).mean_pct / 10;
      // What it would choose is at most 5 % slower than the best of the measured runs.
      EXPECT_LE(oracle_gap_pct(of.calibrated).value_or(0), 5) << set << ", tenth " << k;
    }
    EXPECT_LE(mean_pct, most_pct) << set;
  }
}

}  // namespace
}  // namespace sailor::bench
