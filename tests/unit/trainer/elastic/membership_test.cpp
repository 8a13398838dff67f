// Who is lost, who is started again, and which nodes go and come back. Peers are names, not connections.
#include "trainer/elastic/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kBySignal = 9;

// A process on n0, the controller's node, and one on n1, which has an agent whose step is process 7.
struct MembershipTest : testing::Test {
  ScratchDirectory scratch;
  RunDirectory directory{scratch.path() + "/run"};
  EventLog events{directory};
  ControlServer server{{.bind_address = "127.0.0.1"}};
  double now_s = 0;
  std::vector<std::string> said, started, agents, lost;
  std::vector<int> joined;
  Growth growth{{}, events, "", [](const std::string&) {}};
  Membership members{{.node = "n0",
                      .start_process =
                          [this](const StartProcess& what) {
                            started.push_back(what.place);
                            return 1;
                          },
                      .start_agent =
                          [this](const std::string& node) {
                            agents.push_back(node);
                            return 8;
                          }},
                     {.now_s = [this] { return now_s; },
                      .say = [this](const std::string& text) { said.push_back(text); },
                      .joined = [this](int process) { joined.push_back(process); },
                      .grown = [](const SnapshotNode&) {},
                      .lost = [this](int, const std::string& why) { lost.push_back(why); },
                      .unreachable = [](int, int, const std::string&, int) {}},
                     server,
                     growth,
                     events};

  MembershipTest() {
    agent();
    for (const int rank : {0, 1}) join(rank, 100 + rank);
  }
  void agent() {
    members.hello("agent", {.role = ControlRole::agent, .node = "n1", .pid = 6, .step_pid = 7});
  }
  void join(int rank, int64_t pid) {
    const std::string node = "n" + std::to_string(rank);
    members.hello("process " + std::to_string(pid),
                  {.rank = pid < 200 ? rank : -1, .node = node, .pid = pid, .place = node, .gpu = 0});
  }
};

TEST_F(MembershipTest, AProcessThatEndedIsLostAndStartedAgain) {
  EXPECT_THAT(joined, ElementsAre(0, 1));
  members.process_ended("n0", 100, kBySignal);
  EXPECT_THAT(lost, ElementsAre(HasSubstr("rank 0 on n0 (pid 100): was killed by signal 9")));
  EXPECT_THAT(started, ElementsAre("n0"));
  EXPECT_THAT(members.usable(), ElementsAre(1));
  EXPECT_TRUE(members.others_come());
  join(0, 200);
  EXPECT_THAT(members.usable(), ElementsAre(1, 2));
  EXPECT_FALSE(members.others_come());
}

TEST_F(MembershipTest, ASilentProcessIsLostOnceThoughItsEndIsReportedToo) {
  members.peer_silent("process 101", 5);
  EXPECT_THAT(members.usable(), ElementsAre(0));
  members.process_ended("n1", 101, kBySignal);
  EXPECT_THAT(lost, ElementsAre(HasSubstr("no answer for 5.0 s")));
  EXPECT_TRUE(members.others_come()) << "its GPU gets another process";
}

TEST_F(MembershipTest, OneThatNeverComesIsStartedAgain) {
  members.process_ended("n0", 100, kBySignal);
  now_s = 61;
  members.tick(false);
  EXPECT_THAT(started, ElementsAre("n0", "n0"));
}

TEST_F(MembershipTest, ANodeThatFellSilentIsAskedForUntilItsAgentIsBack) {
  members.peer_silent("agent", 5);
  EXPECT_THAT(lost, ElementsAre(HasSubstr("no answer from its node for 5.0 s")));
  EXPECT_THAT(members.usable(), ElementsAre(0));
  members.tick(false);
  EXPECT_THAT(agents, IsEmpty());
  now_s = 10;
  members.tick(false);
  members.tick(false);
  EXPECT_THAT(agents, ElementsAre("n1")) << "one try at a time";
  agent();
  EXPECT_TRUE(members.others_come()) << "the agent has been told to start a process";
  now_s = 20;
  members.tick(false);
  EXPECT_THAT(agents, ElementsAre("n1"));
}

TEST_F(MembershipTest, ANodeThatIsToldToGoIsInNoPlanAndNothingIsStartedThere) {
  EXPECT_TRUE(members.leaving("n0", 20));
  EXPECT_FALSE(members.leaving("n0", 20)) << "everybody says it";
  EXPECT_EQ(said.size(), 1u);
  EXPECT_THAT(members.usable(), ElementsAre(1));
  members.process_ended("n0", 100, kBySignal);
  EXPECT_THAT(started, IsEmpty());
}

TEST_F(MembershipTest, APlanIsPossibleWhereEveryGpuHasAUsableProcess) {
  Plan plan;
  PlanStage stage;
  stage.gpus = {0};
  stage.node = "n1";
  plan.pipelines.push_back({1, {stage}});
  stage.node = "n0";
  plan.pipelines.push_back({1, {stage}});
  EXPECT_THAT(members.processes_of(plan).value(), ElementsAre(1, 0));
  EXPECT_THAT(members.gpus_of({1, 0}), ElementsAre(LiveGpu{"n0", 0}, LiveGpu{"n1", 0}));
  members.child_ended(7, 0);  // the step of the agent on n1
  EXPECT_FALSE(members.processes_of(plan));
}

TEST_F(MembershipTest, OnceItIsClosedNobodyIsLostOrStarted) {
  members.close();
  members.process_ended("n0", 100, kBySignal);
  members.peer_silent("agent", 5);
  now_s = 100;
  members.tick(true);
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_THAT(started, IsEmpty());
  EXPECT_THAT(agents, IsEmpty());
}

}  // namespace
}  // namespace sailor
