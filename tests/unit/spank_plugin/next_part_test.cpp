#include "spank_plugin/next_part.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sailor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(NextPart, TheJobCarriesItsSubmission) {
  setenv("SBATCH_ACCOUNT", "physics", 1);
  setenv("SAILOR_OBJECTIVE", "cost", 1);
  setenv("SAILOR_RUN_DIRECTORY", "x", 1);
  const Resubmission sent = resubmission_of({{"time", "60"}, {"hold"}}, {"argument"});
  for (const char* name : {"SBATCH_ACCOUNT", "SAILOR_OBJECTIVE", "SAILOR_RUN_DIRECTORY"}) unsetenv(name);
  EXPECT_THAT(sent.options, ElementsAre(GivenOption{"time", "60"}));
  EXPECT_THAT(sent.arguments, ElementsAre("argument"));
  EXPECT_THAT(sent.environment, Contains(Pair("SBATCH_ACCOUNT", "physics")));
  EXPECT_THAT(sent.environment, Contains(Pair("SAILOR_OBJECTIVE", "cost")));
  EXPECT_THAT(sent.environment, Not(Contains(Key("SAILOR_RUN_DIRECTORY"))));
}

TEST(NextPart, OneSubmissionContinuesTheJobThatMadeIt) {
  EXPECT_FALSE(take_previous_part());
  setenv("SAILOR_CONTINUES", to_json(PreviousPart{"12", "/home/u/job.yaml", "/home/u/run"}).c_str(), 1);
  const auto part = take_previous_part();
  ASSERT_TRUE(part);
  EXPECT_EQ(part->job, "12");
  EXPECT_EQ(getenv("SAILOR_CONTINUES"), nullptr) << "jobs inherit the environment";
  setenv("SAILOR_CONTINUES", "12", 1);
  EXPECT_THROW(take_previous_part(), std::runtime_error);
}

std::vector<std::string> chain_variables(const SubmitOptions& options, const std::string& checkpoints,
                                         const std::optional<PreviousPart>& previous) {
  JobSpec job;
  job.checkpoint.directory = checkpoints;
  EnvironmentVariables variables;
  add_chain_variables(variables, options, job, {}, previous);
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) names.push_back(name);
  return names;
}

TEST(NextPart, OnlyJobsWithCheckpointsAreContinued) {
  SubmitOptions options;
  const PreviousPart previous{"12", "/home/u/job.yaml", "/home/u/run"};
  EXPECT_THAT(chain_variables(options, "checkpoints", {}), ElementsAre("SAILOR_SUBMISSION"));
  EXPECT_THAT(chain_variables(options, "", {}), ElementsAre());
  options.fresh = true;
  EXPECT_THAT(chain_variables(options, "checkpoints", {}), ElementsAre("SAILOR_SUBMISSION", "SAILOR_FRESH"));
  EXPECT_THAT(chain_variables(options, "checkpoints", previous),
              ElementsAre("SAILOR_SUBMISSION", "SAILOR_RUN"))
      << "only the first part begins anew";
  options.chain = false;
  EXPECT_THAT(chain_variables(options, "checkpoints", {}), ElementsAre("SAILOR_FRESH"));
}

}  // namespace
}  // namespace sailor
