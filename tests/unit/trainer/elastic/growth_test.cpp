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
  std::vector<Growth::Wish> wishes;
  std::vector<int64_t> keepers;
  std::optional<double> end_s;
  bool yields = false;
  int64_t steps_left = 10000;
  double change_s = 1;
  std::set<std::string> own_nodes;
  std::vector<QueuedNodes> queued;
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

  // Nodes of a kind: as the one of the job, or with other GPUs (r1, ...).
  static std::string entry(const std::string& name, const std::string& free = "") {
    return "  - {name: " + name + ", partition: fast, zone: east, region: land, gpu_type: quick, gpus: " +
           (name.front() == 'q' ? "2" : "4") + free + ", host: {gres: 'gpu:quick', cpus: 2, memory: 1GiB}}";
  }
  void cluster(const std::string& nodes, const std::string& busy = "", const std::string& wanted = "",
               const std::string& free = "") {
    std::ofstream file(scratch.path() + "/snapshot.yaml");
    file << "sailor_snapshot: 1\nnodes:\n";
    for (const char* node : {"q2", "q3", "r1"}) {
      if (nodes.find(node) != std::string::npos) file << entry(node, free) << '\n';
    }
    if (nodes.empty()) file << "  []\n";
    if (!busy.empty()) file << "busy:\n";
    for (const char* node : {"q1", "q2", "q3", "r1"}) {
      if (busy.find(node) == std::string::npos) continue;
      const std::string line = entry(node);
      file << line.substr(0, line.size() - 1) << ", state: in use}\n";
    }
    if (!wanted.empty()) file << "wanted:\n  - {node: " << wanted << ", job: 123}\n";
  }
  void make(std::optional<int> most_nodes = {}) {
    Growth::Options options{
        .every_s = 10, .yields = yields, .look_command = {}, .most_nodes = most_nodes, .end_s = end_s};
    options.look_command = [this] {
      return std::vector<std::string>{"cat", scratch.path() + "/snapshot.yaml"};
    };
    options.own_nodes = own_nodes;
    options.queued = queued;
    options.start_keeper = [this](const Growth::Wish& wish) {
      asked.push_back(wish.node.name);
      wishes.push_back(wish);
      keepers.push_back(spawn({"sh", "-c", keeper},
                              {.environment = {}, .output_file = scratch.path() + "/run/logs/helpers.log"}));
      return static_cast<pid_t>(keepers.back());
    };
    options.end_keeper = [](pid_t id) { kill(id, kEndHelperJob); };
    options.clock_s = [] { return static_cast<double>(std::time(nullptr)); };
    growth.emplace(options, events, directory.log("helpers.log"),
                   [this](const std::string& text) { said.push_back(text); });
  }
  Growth::Training training() const {
    return {.plan = plan,
            .gpus = {{"q1", 0}, {"q1", 1}},
            .nodes = 1,
            .iteration_s = 1,
            .steps_left = steps_left,
            .change_s = change_s};
  }
  // One look at the cluster, and what follows of it. After one that found something there is a longer pause.
  void look() {
    now_s += 60;
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
  EXPECT_FALSE(growth->came("q2", 1, now_s)) << "not one of its helper jobs";
  EXPECT_FALSE(growth->holds("q9"));
  // Whichever nodes of the kind they got.
  for (const auto& [node, keeper] : {std::pair("q3", keepers[0]), std::pair("q2", keepers[1])}) {
    const auto came = growth->came(node, keeper, now_s);
    ASSERT_TRUE(came);
    EXPECT_EQ(came->name, node);
    EXPECT_EQ(came->partition, "fast");
    EXPECT_THAT(came->free_gpus, ElementsAre(0, 1));
  }
  EXPECT_FALSE(growth->awaits(now_s));
  // Used ones stay; one that no plan uses is idle after a while, and goes back.
  EXPECT_THAT(growth->idle({"q1", "q2"}, 15, now_s + 10), IsEmpty());
  EXPECT_THAT(growth->idle({"q1", "q2"}, 15, now_s + 20), ElementsAre("q3"));
  growth->release("q3", "no use", true, now_s);
  EXPECT_THAT(log(), HasSubstr(R"("event":"released","node":"q3")"));
  EXPECT_FALSE(child_ends());  // its end is no loss
  EXPECT_FALSE(growth->holds("q3"));
  EXPECT_TRUE(growth->holds("q2"));
}

TEST_F(GrowthTest, WhatSlurmRefusesIsNotAskedForAgainAtOnce) {
  keeper = "echo sbatch: error: limit; exit 1";
  make(2);
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 1u);
  child_ends();
  EXPECT_THAT(log(), HasSubstr(R"("event":"grow_refused")"));
  EXPECT_THAT(log(), HasSubstr("sbatch: error: limit"));
  look();  // the other one is of the same kind
  EXPECT_EQ(asked.size(), 1u);
  now_s += 200;
  look();
  EXPECT_EQ(asked.size(), 2u);
}

TEST_F(GrowthTest, ALookThatFindsNothingNewMeansTheLastSnapshot) {
  keeper = "echo sbatch: error: limit; exit 1";
  cluster("q2");
  make(2);
  growth->tick(training(), *replanner, now_s);
  look();
  child_ends();
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
  ASSERT_TRUE(growth->came(asked[0], keepers[0], now_s));
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
  cluster("q2, q3", "", "", ", free_gpus: [1], shared: true");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  EXPECT_THAT(asked, IsEmpty());
}

// It failed for so long that the scheduler took it from the job, and is back.
TEST_F(GrowthTest, ANodeThatWasItsOwnIsAskedForAsAnyOther) {
  own_nodes = {"q1", "q2"};
  cluster("q2");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_THAT(asked, ElementsAre("q2"));
  const auto came = growth->came("q2", keepers[0], now_s);
  ASSERT_TRUE(came);
  EXPECT_EQ(came->name, "q2");
  EXPECT_TRUE(growth->holds("q2"));
}

TEST_F(GrowthTest, ANodeInUseIsWaitedForInTheQueue) {
  cluster("", "q1, q2, q3");
  own_nodes = {"q1"};
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_THAT(asked, ElementsAre("q2")) << "one of a kind";
  EXPECT_FALSE(wishes[0].by_name);
  EXPECT_GE(wishes[0].least_s, 300);
  EXPECT_THAT(log(), HasSubstr(R"("event":"grow_queued","gpu_type":"quick","gpus":2,"partition":"fast")"));
  EXPECT_FALSE(growth->awaits(now_s)) << "training goes on, and changes its plan, as if there were none";
  look();
  EXPECT_EQ(asked.size(), 1u);
  const auto came = growth->came("q3", keepers[0], now_s);
  ASSERT_TRUE(came);
  EXPECT_EQ(came->name, "q3");
  EXPECT_TRUE(growth->holds("q3"));
}

TEST_F(GrowthTest, OtherKindsAreNotTakenForIt) {
  cluster("", "q2, r1");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_FALSE(wishes.empty());
  for (const Growth::Wish& wish : wishes)
    EXPECT_THAT(wish.not_on, ElementsAre(wish.node.name == "q2" ? "r1" : "q2"));
}

TEST_F(GrowthTest, AFreeNodeIsLeftToTheJobThatWaitsForItsKind) {
  cluster("", "q2, q3");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 1u);
  cluster("q2", "q3");
  look();
  EXPECT_EQ(asked.size(), 1u);
}

TEST_F(GrowthTest, WhatOthersTookIsWaitedForOnce) {
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 2u);
  now_s += 31;
  growth->tick(training(), *replanner, now_s);
  EXPECT_FALSE(growth->awaits(now_s));
  EXPECT_THAT(log(), HasSubstr(R"("why":"others have taken the node")"));
  EXPECT_EQ(growth->gave_up(keepers[0]) + growth->gave_up(keepers[1]), 1);
  const int64_t gone = growth->gave_up(keepers[0]) ? keepers[0] : keepers[1];
  EXPECT_FALSE(growth->came("q2", gone, now_s)) << "it started all the same";
}

TEST_F(GrowthTest, NearTheEndNothingIsWaitedFor) {
  cluster("", "q2");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 1u);
  steps_left = 299;  // of a second
  growth->tick(training(), *replanner, now_s);
  EXPECT_TRUE(growth->gave_up(keepers[0]));
  EXPECT_THAT(log(), HasSubstr(R"("event":"grow_withdrawn")"));
  EXPECT_FALSE(child_ends());
  now_s += 1000;
  cluster("", "q2, q3");
  look();
  EXPECT_EQ(asked.size(), 1u);
}

TEST_F(GrowthTest, AKindThatThePlanWouldNotUseIsNotWaitedForAnyMore) {
  cluster("", "q2");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 1u);
  change_s = 1e6;  // longer than the rest of the training
  cluster("", "q2, r1");
  look();
  EXPECT_TRUE(growth->gave_up(keepers[0]));
  EXPECT_EQ(asked.size(), 1u);
}

TEST_F(GrowthTest, ANodeThatAnotherJobWaitsForIsReturned) {
  for (const bool does : {false, true}) {
    yields = does;
    cluster("q2");
    make();
    growth->tick(training(), *replanner, now_s);
    look();
    ASSERT_TRUE(growth->came("q2", keepers.back(), now_s));
    cluster("", "q2", "q3");
    look();
    EXPECT_FALSE(growth->gave_up(keepers.back())) << "it has no q3";
    cluster("", "q2", "q2");
    now_s += 120;
    look();
    EXPECT_EQ(growth->gave_up(keepers.back()), does);
  }
  EXPECT_THAT(log(), HasSubstr(R"("event":"released","node":"q2","why":"job 123 waits for it")"));
  const auto keeper_pid = static_cast<pid_t>(keepers.back());
  int status = 0;
  if (waitpid(keeper_pid, &status, 0) == keeper_pid) {  // else look() has reaped it
    EXPECT_FALSE(growth->child_ended(keeper_pid, status, now_s)) << "its end is no loss";
  }
  const size_t before = asked.size();
  cluster("q2");
  now_s += 120;  // after a rest
  look();
  EXPECT_EQ(asked.size(), before + 1);
}

TEST_F(GrowthTest, WhatItCouldHaveWaitedForIsAskedForInItsTurn) {
  queued = {{"fast", "east", "quick", 4, 5}, {"fast", "west", "quick", 4, 1}};
  own_nodes = {"q1"};
  yields = true;
  cluster("", "q1, q2, q3, r1");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  const auto in_turn = [](const Growth::Wish& wish) { return wish.in_turn && wish.node.gpus == 4; };
  EXPECT_EQ(std::ranges::count_if(wishes, in_turn), 5) << "of the kind that there is";
  EXPECT_THAT(wishes[0].node.free_gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(wishes[0].not_on, (std::vector<std::string>{"q1", "q2", "q3"})) << "which look the same";
  EXPECT_EQ(wishes.size(), 6u) << "besides, a node of the other kind, after others";
  EXPECT_THAT(log(),
              HasSubstr(R"("event":"grow_queued","gpu_type":"quick","gpus":4,"partition":"fast","count":5)"));
  EXPECT_THAT(said[0], HasSubstr("waits in the queue for 5 nodes with 4 quick (fast)"));
  look();
  EXPECT_EQ(wishes.size(), 6u);
  ASSERT_TRUE(growth->came("r1", keepers[0], now_s));
  cluster("", "q1, q2, q3, r1", "r1");
  now_s += 120;
  look();
  EXPECT_FALSE(growth->gave_up(keepers[0])) << "others do not get it";
  steps_left = 10;
  look();
  EXPECT_TRUE(growth->gave_up(keepers[1])) << "too little of the training is left";
}

TEST_F(GrowthTest, ForManyNodesAFewHelperJobsWaitInTheirTurn) {
  queued = {{"fast", "east", "quick", 4, Growth::kMostInTurn + 2}};
  own_nodes = {"q1"};
  cluster("", "q1, r1");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(wishes.size(), static_cast<size_t>(Growth::kMostInTurn));
  growth->came("r2", keepers[0], now_s);
  growth->came("r3", keepers[1], now_s);
  cluster("q2", "q1, r1");
  look();
  EXPECT_EQ(std::ranges::count_if(wishes, [](const Growth::Wish& wish) { return wish.in_turn; }),
            Growth::kMostInTurn + 2);
}

TEST_F(GrowthTest, NoMoreIsAskedForInItsTurnThanTheJobMayHave) {
  queued = {{"fast", "east", "quick", 2, 5}};
  own_nodes = {"q1"};
  cluster("", "q1, q2, q3");
  make(3);
  growth->tick(training(), *replanner, now_s);
  look();
  EXPECT_EQ(asked.size(), 2u);
}

TEST_F(GrowthTest, ANodeThatWasPreemptedIsWaitedForAgain) {
  own_nodes = {"q1"};
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  ASSERT_EQ(asked.size(), 2u);
  growth->came("q2", keepers[0], now_s);
  growth->came("q3", keepers[1], now_s);
  growth->release("q3", "told to leave", false, now_s);
  EXPECT_TRUE(growth->gave_up(keepers[1]));
  child_ends();
  cluster("", "q1, q2, q3");
  look();
  EXPECT_EQ(asked.size(), 2u) << "the node itself rests";
  now_s += 100;
  look();
  EXPECT_EQ(asked.size(), 3u);
}

TEST_F(GrowthTest, AChangedClusterIsLookedAtLessOften) {
  cluster("");
  make();
  growth->tick(training(), *replanner, now_s);
  look();
  now_s += 50;  // 10 s each for the requests of that look
  growth->tick(training(), *replanner, now_s);
  EXPECT_FALSE(growth->undecided());
  std::filesystem::resize_file(scratch.path() + "/snapshot.yaml", 0);  // nothing new
  look();
  now_s += 10;
  growth->tick(training(), *replanner, now_s);
  EXPECT_TRUE(growth->undecided());
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
