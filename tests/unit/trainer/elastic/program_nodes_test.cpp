// The nodes of an elastic job of another trainer's program. Agents are names, not connections.
#include "trainer/elastic/program_nodes.h"

#include <gmock/gmock.h>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr pid_t kFirstChild = 100;

SnapshotNode two_gpus(const std::string& name) {
  SnapshotNode node;
  node.name = name;
  node.gpu_type = "A";
  node.gpus = 4;
  node.free_gpus = {0, 2};
  return node;
}

Snapshot two_nodes() {
  Snapshot snapshot;
  snapshot.nodes = {two_gpus("n0"), two_gpus("n1")};
  return snapshot;
}

// The agents of n0 and n1 have come; their steps are the processes 100 and 101.
struct ProgramNodesTest : testing::Test {
  ScratchDirectory scratch;
  RunDirectory directory{scratch.path() + "/run"};
  EventLog events{directory};
  ControlServer server{{.bind_address = "127.0.0.1"}};
  double now_s = 0;
  std::vector<std::string> said, started, joined, lost;
  Growth growth{{}, events, "", [](const std::string&) {}};
  ProgramNodes nodes{{.now_s = [this] { return now_s; },
                      .say = [this](const std::string& text) { said.push_back(text); },
                      .start_agent =
                          [this](const std::string& node) {
                            started.push_back(node);
                            return kFirstChild - 1 + static_cast<pid_t>(started.size());
                          },
                      .joined = [this](const std::string& node) { joined.push_back(node); },
                      .grown = [](const SnapshotNode&) {},
                      .lost = [this](const std::string& node,
                                     const std::string& why) { lost.push_back(node + ": " + why); }},
                     two_nodes(),
                     server,
                     growth,
                     events};

  ProgramNodesTest() {
    nodes.start_agents();
    hello("n0", kFirstChild);
    hello("n1", kFirstChild + 1);
  }
  void hello(const std::string& node, pid_t step, ControlRole role = ControlRole::agent) {
    nodes.hello("agent of " + node, {.role = role, .node = node, .step_pid = step});
  }
};

TEST_F(ProgramNodesTest, NodesWithAnAgentCanBeUsed) {
  EXPECT_THAT(started, ElementsAre("n0", "n1"));
  EXPECT_THAT(joined, ElementsAre("n0", "n1"));
  EXPECT_THAT(nodes.usable(), ElementsAre("n0", "n1"));
  EXPECT_EQ(nodes.gpus(), (std::vector<LiveGpu>{{"n0", 0}, {"n0", 2}, {"n1", 0}, {"n1", 2}}));
  EXPECT_EQ(nodes.node_of("agent of n1"), "n1");
}

TEST_F(ProgramNodesTest, AStepThatEndsIsItsNodesLoss) {
  nodes.child_ended(kFirstChild + 1, 9);
  EXPECT_THAT(lost, ElementsAre("n1: the step of its agent was killed by signal 9 (Killed)"));
  EXPECT_THAT(nodes.usable(), ElementsAre("n0"));
  nodes.peer_gone("agent of n1", "no answer");
  EXPECT_EQ(lost.size(), 1u) << "once";
}

TEST_F(ProgramNodesTest, ALostNodeIsTriedUntilItIsBack) {
  nodes.peer_gone("agent of n1", "no answer from its node for 5.0 s");
  EXPECT_THAT(lost, ElementsAre(HasSubstr("no answer from its node")));
  nodes.tick();
  EXPECT_EQ(started.size(), 2u);
  now_s = 4;
  nodes.tick();
  nodes.tick();
  EXPECT_THAT(started, ElementsAre("n0", "n1", "n1")) << "one try at a time";
  nodes.child_ended(kFirstChild + 2, 256);
  now_s = 20;
  nodes.tick();
  EXPECT_EQ(started.size(), 4u);
  hello("n1", kFirstChild + 3);
  EXPECT_THAT(joined, ElementsAre("n0", "n1", "n1"));
  EXPECT_THAT(nodes.usable(), ElementsAre("n0", "n1"));
  now_s = 100;
  nodes.tick();
  EXPECT_EQ(started.size(), 4u);
}

TEST_F(ProgramNodesTest, ALeavingNodeIsInNoPlanUntilItComesBack) {
  EXPECT_TRUE(nodes.leaving("n1", 20));
  EXPECT_FALSE(nodes.leaving("n1", 20)) << "everybody says it";
  EXPECT_THAT(nodes.usable(), ElementsAre("n0"));
  EXPECT_FALSE(nodes.all_are_leaving());
  EXPECT_TRUE(nodes.leaving("n0", 20));
  EXPECT_TRUE(nodes.all_are_leaving());
  hello("n1", 107);
  EXPECT_THAT(nodes.usable(), ElementsAre("n1"));
}

TEST_F(ProgramNodesTest, StrangersAreNotUsed) {
  hello("n5", 200);
  hello("n0", 200, ControlRole::rank);
  EXPECT_THAT(nodes.usable(), ElementsAre("n0", "n1"));
  EXPECT_EQ(joined.size(), 2u);
}

TEST_F(ProgramNodesTest, EndsAreNoLossesOnceTheJobEnds) {
  nodes.close();
  nodes.child_ended(kFirstChild, 9);
  now_s = 100;
  nodes.tick();
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_EQ(started.size(), 2u);
}

}  // namespace
}  // namespace sailor
