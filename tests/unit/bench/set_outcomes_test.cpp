#include "tests/bench/set_outcomes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

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

}  // namespace
}  // namespace sailor::bench
