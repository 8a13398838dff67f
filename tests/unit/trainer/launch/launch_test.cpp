// The launch route: command lines, and who becomes which rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/launch/launcher.h"
#include "trainer/launch/rank_assignment.h"

namespace sailor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

PlanStage stage_on(const std::string& node, std::vector<int> gpus) {
  PlanStage stage;
  stage.end_layer = 3;
  stage.gpu_type = "A";
  stage.node = node;
  stage.shape.tp = static_cast<int>(gpus.size());
  stage.gpus = std::move(gpus);
  return stage;
}

// Ranks: 0,1 on n1; 2 on n2; 3 on n1.
Plan two_nodes() {
  Plan plan;
  plan.pipelines = {{1, {stage_on("n1", {0, 1}), stage_on("n2", {0})}}, {1, {stage_on("n1", {2})}}};
  return plan;
}

TEST(RankAssignment, ProcessesTakeTheRanksOfTheNodeTheyFindThemselvesOn) {
  EXPECT_THAT(assign_ranks(two_nodes(), {"n1", "n1", "n1", "n2"}), ElementsAre(0, 1, 3, 2));
  EXPECT_THAT(assign_ranks(two_nodes(), {"n2", "n1", "n1", "n1"}), ElementsAre(2, 0, 1, 3));
}

TEST(RankAssignment, AWrongNumberOfProcessesNamesTheNode) {
  for (const std::vector<std::string>& nodes : {std::vector<std::string>{"n1", "n1", "n2", "n2"},
                                                {"n1", "n1", "n1"},
                                                {"n1", "n1", "n1", "n2", "n9"}}) {
    try {
      assign_ranks(two_nodes(), nodes);
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("node n")) << e.what();
    }
  }
}

TEST(LaunchCommand, HostsAndSlotsComeFromThePlan) {
  const Plan plan = two_nodes();
  const auto command = mpirun_command({"mpirun", 4}, hosts_of(plan), "/x/sailor-agent", {"/x/sailor-rank"});
  EXPECT_THAT(command, IsSupersetOf({"n1:3,n2:1", "/x/sailor-agent remote-shell", "rsh", "^slurm", "4",
                                     "rtc_hwloc_vmhole", "mpi_yield_when_idle", "^han"}));
  EXPECT_EQ(command.back(), "/x/sailor-rank");
}

TEST(LaunchCommand, ProgramsThatStayInTheirStepsNeedNoPlan) {
  const auto command =
      mpirun_command({"mpirun", 4}, {{"n1", 2}, {"n2", 3}}, "/x/sailor-agent", {"/x/p", "-a"});
  EXPECT_THAT(command, IsSupersetOf({"n1:2,n2:3", "/x/sailor-agent remote-shell", "5"}));
  EXPECT_EQ(std::vector<std::string>(command.end() - 2, command.end()),
            (std::vector<std::string>{"/x/p", "-a"}));
  const auto here = mpirun_command({"mpirun", 4}, {{"localhost", 2}}, "", {"/x/p"});
  EXPECT_THAT(here, IsSupersetOf({"isolated", "localhost:2", "2"}));
  const auto step = remote_shell_step("n1", "orted", {{"n1", -1, 0}}, "").command;
  EXPECT_EQ(std::vector<std::string>(step.end() - 3, step.end() - 1), (std::vector<std::string>{"sh", "-c"}));
  // Daemons that share a host clear each other's directories.
  EXPECT_THAT(step.back(), ::testing::MatchesRegex("TMPDIR=.*export TMPDIR.*; orted"));
}

TEST(RemoteShell, AStepIsOnTheNodeUnderAnAgent) {
  const StepSpec step = remote_shell_step("n2", "orted --x", {{"n1", 0, 8}, {"n2", 1, 4}}, "/x/sailor-agent");
  EXPECT_EQ(step.node.name, "n2");
  EXPECT_EQ(step.node.het_group, 1);
  EXPECT_EQ(step.node.cpus, 4);
  EXPECT_THAT(step.command, ElementsAre("/x/sailor-agent", "node", "sh", "-c", "orted --x"));
  EXPECT_THROW(remote_shell_step("n9", "c", {{"n1", -1, 0}}, "a"), std::runtime_error);
}

TEST(Allocation, NodesSurviveTheEnvironment) {
  const auto back = parse_allocated_nodes(to_text({{"n1", -1, 8}, {"n-2", 3, 0, 2}}));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].name, "n-2");
  EXPECT_EQ(back[1].het_group, 3);
  EXPECT_EQ(back[0].het_group, -1);
  EXPECT_EQ(back[0].cpus, 8);
  EXPECT_EQ(back[0].gpus, 0);
  EXPECT_EQ(back[1].gpus, 2);
  for (const char* wrong : {"n1", "n1:0:8", ":0:8:0"})
    EXPECT_THROW(parse_allocated_nodes(wrong), std::runtime_error) << wrong;
}

}  // namespace
}  // namespace sailor
