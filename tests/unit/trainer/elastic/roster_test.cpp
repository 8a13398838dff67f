// Who belongs to a job.
#include "trainer/elastic/roster.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

Hello process(const std::string& node, int64_t pid, int gpu, int rank = -1) {
  return {.rank = rank, .node = node, .pid = pid, .start_ticks = 100 + pid, .place = node, .gpu = gpu};
}

TEST(Roster, AGpuHasOneProcessUntilThatIsGone) {
  Roster roster;
  const auto first = roster.joined("p1", process("n1", 10, 0, 0));
  ASSERT_TRUE(first);
  EXPECT_FALSE(roster.joined("p2", process("n1", 10, 0))) << "the same process says hello again";
  EXPECT_FALSE(roster.joined("p3", process("n1", 11, 0))) << "its GPU is taken";
  EXPECT_TRUE(roster.joined("p4", process("n2", 10, 0)));
  roster.at(*first).gone = true;
  EXPECT_TRUE(roster.joined("p5", process("n1", 12, 0)));
  EXPECT_EQ(roster.alive().size(), 2u);
}

TEST(Roster, AProcessIdThatIsUsedAgainIsTheNewProcess) {
  Roster roster;
  const auto first = roster.joined("p1", process("n1", 10, 0));
  roster.at(*first).gone = true;
  Hello again = process("n1", 10, 0);
  again.start_ticks = 999;
  const auto second = roster.joined("p2", again);
  ASSERT_TRUE(second);
  EXPECT_EQ(roster.find("n1", 10), second);
}

TEST(Roster, AgentsAreKnownByConnectionAndByTheirSlurmStep) {
  Roster roster;
  roster.agent_joined("a1", {.role = ControlRole::agent, .node = "n1", .step_pid = 77});
  EXPECT_EQ(roster.node_of_agent("a1"), "n1");
  EXPECT_EQ(roster.node_of_step(77), "n1");
  EXPECT_EQ(roster.agent_of("n1"), "a1");
  EXPECT_FALSE(roster.node_of_step(78));
  roster.agent_gone("n1");
  EXPECT_FALSE(roster.agent_of("n1"));
}

TEST(Roster, RanksOfTheFirstGenerationMayShareAGpu) {
  Roster roster;
  EXPECT_TRUE(roster.joined("p1", process("n1", 10, 0, 0)));
  const auto second = roster.joined("p2", process("n1", 11, 0, 1));
  ASSERT_TRUE(second) << "a job that is not elastic does not care";
  EXPECT_EQ(roster.of_rank(1), second);
  roster.at(*second).gone = true;
  EXPECT_FALSE(roster.of_rank(1));
  EXPECT_FALSE(roster.of_rank(-1));
}

TEST(Roster, WhoIsInNoGenerationIsSpare) {
  Roster roster;
  const int a = *roster.joined("p1", process("n1", 10, 0, 0)),
            b = *roster.joined("p2", process("n1", 11, 1, 1));
  roster.assign({b});
  EXPECT_EQ(roster.at(a).rank, -1);
  EXPECT_EQ(roster.at(b).rank, 0);
  EXPECT_EQ(roster.at(b).describe(), "rank 0 on n1 (pid 11)");
  EXPECT_EQ(roster.at(a).describe(), "spare process on n1 (pid 10)");
}

}  // namespace
}  // namespace sailor
