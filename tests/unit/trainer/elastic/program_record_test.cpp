// What is known of a program that tells of its steps, and whether it hangs.
#include "trainer/elastic/program_record.h"

#include <gmock/gmock.h>

#include <fstream>

#include "planner/plan/plan_json.h"
#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct ProgramRecordTest : testing::Test {
  const std::string fixtures = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures/sailor-42";
  const JobSpec job = load_job_spec(fixtures + "/job.yaml");
  const Plan plan = load_plan(fixtures + "/plan.json");
  const ScratchDirectory scratch;
  const RunDirectory directory{scratch.path() + "/run"};
  const ControllerOptions options;
  ProgramRecord record{job, plan, own_framework(), directory, options};

  void tell(int rank, int64_t step) {
    std::ofstream(record.steps_directory() + "/rank-" + std::to_string(rank) + ".jsonl", std::ios::app)
        << R"({"generation": 1, "step": )" << step << R"(, "step_s": 0.1})" << '\n';
  }
};

TEST_F(ProgramRecordTest, AProgramHangsOnlyBetweenSteps) {
  record.look();
  EXPECT_FALSE(record.hangs_s(0)) << "it has not told of any step";
  ProgramRecord next{job, plan, own_framework(), directory, options};
  tell(0, 1);
  next.look();
  ASSERT_TRUE(next.hangs_s(0));
  EXPECT_LT(*next.hangs_s(0), 60);
  EXPECT_FALSE(next.hangs_s(3600));
  ProgramRecord finished{job, plan, own_framework(), directory, options};
  tell(0, job.training.steps);
  finished.look();
  EXPECT_FALSE(finished.hangs_s(0)) << "it may write its last checkpoint";
}

TEST_F(ProgramRecordTest, RanksThatAreBehindAreNamed) {
  EXPECT_THAT(record.stragglers(), IsEmpty());
  for (const int rank : {0, 1, 2}) tell(rank, 1);
  EXPECT_THAT(record.stragglers(), IsEmpty());
  for (const int rank : {0, 2}) tell(rank, 2);
  EXPECT_THAT(record.stragglers(),
              ElementsAre(testing::MatchesRegex("rank 1 on .* has done step 1, others 2")));
}

}  // namespace
}  // namespace sailor
