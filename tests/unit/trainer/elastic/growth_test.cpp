// Looking, asking, being refused, giving back: with programs that stand for Slurm's.
#include "trainer/elastic/growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "trainer/launch/helper_job.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kGrowthFixtures = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures/";

// A job on q1, in a cluster where q2 and q3 are free and as quick.
struct GrowthTest : testing::Test {
  ScratchDirectory scratch;
  RunDirectory directory{scratch.path() + "/run"};
  EventLog events{directory};
  JobSpec job = load_job_spec(kGrowthFixtures + "job.yaml");
  std::string keeper = "exec sleep 1000";  // what stands for a keeper
  std::vector<std::string> asked, said;
  std::set<std::string> own_nodes;
  double now_s = 0;
  Plan plan;
  std::optional<Replanner> replanner;
  std::optional<Growth> growth;

  GrowthTest() {
    PlanStage stage;
    stage.end_layer = 6;
    stage.gpu_type = "quick";
    stage.zone = "east";
    stage.shape.tp = 2;
    stage.node = "q1";
    stage.gpus = {0, 1};
    plan.model = "tiny";
    plan.global_batch = 8;
    plan.microbatch = 2;
    plan.pipelines = {{4, {stage}}};
    Replanner::Options options;
    options.site_config = kGrowthFixtures + "sailor.yaml";
    options.time.limit_s = 20;
    replanner.emplace(job, plan, options);
    cluster("q2, q3");
  }
  ~GrowthTest() override { end_all_children(0); }

  void cluster(const std::string& nodes) {
    std::ofstream file(scratch.path() + "/snapshot.yaml");
    file << "sailor_snapshot: 1\nnodes:\n";
    for (const char* node : {"q2", "q3"}) {
      if (nodes.find(node) != std::string::npos)
        file << "  - {name: " << node
             << ", partition: fast, zone: east, region: land, gpu_type: quick, gpus: 2}\n";
    }
    if (nodes.empty()) file << "  []\n";
  }
  void make(std::optional<int> most_nodes = {}) {
    Growth::Options options{.every_s = 10, .look_command = {}, .most_nodes = most_nodes};
    options.look_command = [this] {
      return std::vector<std::string>{"cat", scratch.path() + "/snapshot.yaml"};
    };
    options.own_nodes = own_nodes;
    options.start_keeper = [this](const SnapshotNode& node) {
      asked.push_back(node.name);
      return spawn({"sh", "-c", keeper},
                   {.environment = {}, .output_file = scratch.path() + "/run/logs/helpers.log"});
    };
    growth.emplace(options, events, directory.log("helpers.log"),
                   [this](const std::string& text) { said.push_back(text); });
  }
  Growth::Training training() const {
    return {.plan = plan,
            .gpus = {{"q1", 0}, {"q1", 1}},
            .nodes = 1,
            .iteration_s = 1,
            .steps_left = 10000,
            .change_s = 1};
  }
  // One look at the cluster, and what follows of it.
  void look() {
    now_s += 10;
    const auto last = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    do {
      growth->tick(training(), *replanner, now_s);  // sets the time of the first look, or looks
      reap();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (growth->undecided() && std::chrono::steady_clock::now() < last);
    EXPECT_FALSE(growth->undecided());
  }
  std::optional<std::string> reap() {
    std::optional<std::string> lost;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (auto node = growth->child_ended(pid, status, now_s)) lost = node;
    }
    return lost;
  }
  // Waits for the end of some child.
  std::optional<std::string> child_ends() {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    return growth->child_ended(pid, status, now_s);
  }
  std::string log() const {
    std::ifstream file(directory.file("events.jsonl"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(GrowthTest, NodesThatPayAreAskedForOnce) {
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  EXPECT_THAT(asked, ElementsAre("q2", "q3"));
  EXPECT_TRUE(growth->awaits(now_s));
  EXPECT_FALSE(growth->came("q9", now_s));
  for (const char* node : {"q2", "q3"}) {
    const auto came = growth->came(node, now_s);
    ASSERT_TRUE(came);
    EXPECT_EQ(came->partition, "fast");
    EXPECT_THAT(came->free_gpus, ElementsAre(0, 1));
  }
  EXPECT_FALSE(growth->awaits(now_s));
  // Used ones stay; one that no plan uses is idle after a while, and goes back.
  EXPECT_THAT(growth->idle({"q1", "q2"}, 15, now_s + 10), IsEmpty());
  EXPECT_THAT(growth->idle({"q1", "q2"}, 15, now_s + 20), ElementsAre("q3"));
  growth->release("q3", "no use", now_s);
  EXPECT_THAT(log(), HasSubstr(R"("event":"released","node":"q3")"));
  EXPECT_FALSE(child_ends());  // its end is no loss
  EXPECT_FALSE(growth->holds("q3"));
  EXPECT_TRUE(growth->holds("q2"));
}

TEST_F(GrowthTest, WhatSlurmRefusesIsNotAskedForAgainAtOnce) {
  keeper = "echo salloc: error: busy; exit 1";
  make(2);
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 1u);
  while (growth->holds(asked[0])) child_ends();
  EXPECT_THAT(log(), HasSubstr(R"("event":"grow_refused")"));
  EXPECT_THAT(log(), HasSubstr("salloc: error: busy"));
  const std::string refused = asked[0];
  cluster(refused);  // the other one is gone
  look();
  EXPECT_EQ(asked.size(), 1u);
  now_s += 200;
  look();
  EXPECT_THAT(asked, ElementsAre(refused, refused));
}

TEST_F(GrowthTest, ALookThatFindsNothingNewMeansTheLastSnapshot) {
  keeper = "echo salloc: error: busy; exit 1";
  cluster("q2");
  make(2);
  growth->tick(training(), *replanner, now_s);
  look();
  while (growth->holds("q2")) child_ends();
  std::filesystem::resize_file(scratch.path() + "/snapshot.yaml", 0);
  look();
  EXPECT_THAT(asked, ElementsAre("q2"));
  now_s += 200;
  look();
  EXPECT_THAT(asked, ElementsAre("q2", "q2"));
}

TEST_F(GrowthTest, AHelperJobThatEndsTakesItsNodeAlong) {
  make(2);
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 1u);
  ASSERT_TRUE(growth->came(asked[0], now_s));
  for (const pid_t child : child_processes()) kill(child, SIGKILL);
  EXPECT_EQ(child_ends(), asked[0]);
}

TEST_F(GrowthTest, AJobWithAsManyNodesAsItMayHaveAsksForNone) {
  make(1);
  growth->tick(training(), *replanner, now_s);
  look();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(GrowthTest, WhatIsFreeOnItsOwnNodesIsNotAskedFor) {
  own_nodes = {"q2", "q3"};
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(GrowthTest, AnEmptyClusterIsNoReasonForAnything) {
  cluster("");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  EXPECT_THAT(asked, IsEmpty());
  EXPECT_THAT(log(), Not(HasSubstr("event")));
}

}  // namespace
}  // namespace sailor
