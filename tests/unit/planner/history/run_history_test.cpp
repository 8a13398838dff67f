#include "planner/history/run_history.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/history/find_run.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

const std::string kRun = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures/sailor-42";

std::string copied(const std::string& name) {
  const std::string directory = test::scratch_directory(name);
  fs::copy(kRun, directory, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  return directory;
}

TEST(RunHistory, ReadsWhatARealRunWrote) {
  const RunHistory history = read_run_history(kRun);
  EXPECT_EQ(num_ranks(history.plan), 6);
  ASSERT_EQ(history.steps.size(), 80u);
  EXPECT_EQ(history.steps.back().step, 80);
  EXPECT_NEAR(*history.steps.back().loss, 4.371, 1e-3);
  EXPECT_NEAR(history.steps.back().validation.at(""), 4.369, 1e-3);
  EXPECT_TRUE(history.steps[0].validation.empty());
  ASSERT_EQ(history.changes.size(), 2u);
  const PlanChange& change = history.changes[0];
  EXPECT_EQ(change.generation, 2);
  EXPECT_EQ(change.ranks, 4);
  EXPECT_EQ(change.state_from, "peers");
  EXPECT_NE(change.why.find("was killed by signal 9"), std::string::npos);
  EXPECT_NEAR(*change.cleanup_s + *change.plan_s + *change.broadcast_s + *change.groups_s + *change.state_s,
              *change.resume_s, 0.01);
  EXPECT_TRUE(change.to_first_step_s);
  ASSERT_TRUE(history.summary);
  EXPECT_EQ(history.summary->status, "finished");
  EXPECT_TRUE(history.summary->emulated);
  EXPECT_EQ(history.summary->ranks.size(), 6u);
  for (const RunEvent& event : history.events) EXPECT_NE(event.name, "planning");
}

TEST(RunHistory, LeavesOutWhatIsNotThereOrTorn) {
  const std::string directory = copied("torn-run");
  for (const char* name : {"events.jsonl", "summary.json"}) fs::remove(directory + "/" + name);
  std::ofstream(directory + "/metrics.jsonl") << "{\"step\":1,\"loss\":2.5}\nno json\n[1]\n{\"step\":2,\"lo";
  const RunHistory history = read_run_history(directory);
  ASSERT_EQ(history.steps.size(), 1u);
  EXPECT_EQ(history.steps[0].loss, 2.5);
  EXPECT_FALSE(history.steps[0].step_s);
  EXPECT_TRUE(history.events.empty());
  EXPECT_FALSE(history.summary);
  std::ofstream(directory + "/summary.json") << "{\"status\":";
  EXPECT_FALSE(read_run_history(directory).summary);
}

TEST(RunHistory, NumbersBeyondTheirTypesAreUnknown) {
  const std::string directory = copied("large-numbers");
  std::ofstream(directory + "/metrics.jsonl") << "{\"step\":1e300}\n";
  std::ofstream(directory + "/events.jsonl")
      << R"({"time":1,"event":"running","generation":1e18,"steps_done":1e300,"steps_lost":-1e300,"resume_s":1})"
      << "\n";
  const RunHistory history = read_run_history(directory);
  EXPECT_EQ(history.steps.at(0).step, 0);
  EXPECT_EQ(history.changes.at(0).generation, 0);
  EXPECT_EQ(history.changes.at(0).steps_done, 0);
  EXPECT_EQ(history.changes.at(0).steps_lost, 0);
}

TEST(FindRun, ByDirectoryByJobAndWhereItWasSubmitted) {
  const std::string directory = copied("find-run");
  EXPECT_EQ(find_run(directory, "", "sailor report"), directory);
  const std::string error = test::error_of([] { find_run("4711", "", "sailor report"); });
  EXPECT_NE(error.find("4711: no run's directory"), std::string::npos) << error;
  const std::string submitted = test::scratch_directory("submitted");
  fs::copy(kRun, submitted + "/sailor-4711");
  EXPECT_EQ(find_run("4711", "", "sailor report",
                     [&](const std::string& job) {
                       EXPECT_EQ(job, "4711");
                       return submitted;
                     }),
            submitted + "/sailor-4711");
}

}  // namespace
}  // namespace sailor
