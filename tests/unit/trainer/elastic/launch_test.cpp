// The launch route: command lines, who becomes which rank, and processes that must not outlive their agent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "planner/spec/text_file.h"
#include "trainer/elastic/launcher.h"
#include "trainer/elastic/rank_assignment.h"
#include "trainer/elastic/run_directory.h"
#include "trainer/elastic/subprocess.h"

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
  stage.tp = static_cast<int>(gpus.size());
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
  const auto command =
      launch_command({.plan = plan, .local = false, .nodes = {}, .environment = {}, .log_file = ""}, "mpirun",
                     "/x/sailor-agent", "/x/sailor-rank");
  EXPECT_THAT(command, IsSupersetOf({"n1:3,n2:1", "/x/sailor-agent remote-shell", "rsh", "^slurm", "4",
                                     "rtc_hwloc_vmhole"}));
  EXPECT_EQ(command.back(), "/x/sailor-rank");
}

TEST(LaunchCommand, ProgramsThatStayInTheirStepsNeedNoPlan) {
  const auto command = mpirun_command("mpirun", {{"n1", 2}, {"n2", 3}}, "/x/sailor-agent", {"/x/p", "-a"});
  EXPECT_THAT(command, IsSupersetOf({"n1:2,n2:3", "/x/sailor-agent remote-shell", "5"}));
  EXPECT_EQ(std::vector<std::string>(command.end() - 2, command.end()),
            (std::vector<std::string>{"/x/p", "-a"}));
  const auto here = mpirun_command("mpirun", {{"localhost", 2}}, "", {"/x/p"});
  EXPECT_THAT(here, IsSupersetOf({"isolated", "localhost:2", "2"}));
  const auto step = remote_shell_command("n1", "orted", {{"n1", -1, 0}}, "");
  EXPECT_EQ(std::vector<std::string>(step.end() - 3, step.end() - 1), (std::vector<std::string>{"sh", "-c"}));
  // Daemons that share a host clear each other's directories.
  EXPECT_THAT(step.back(), ::testing::MatchesRegex("TMPDIR=.*export TMPDIR.*; orted"));
}

TEST(RemoteShell, StepsOverlapTakeNoMemoryAndNameTheirComponent) {
  const auto command =
      remote_shell_command("n2", "orted --x", {{"n1", 0, 8}, {"n2", 1, 4}}, "/x/sailor-agent");
  EXPECT_THAT(command, IsSupersetOf({"--overlap", "--mem=0", "--export=ALL", "--het-group=1", "n2", "4",
                                     "orted --x"}));
  const auto ordinary = remote_shell_command("n1", "c", {{"n1", -1, 0}}, "/x/sailor-agent");
  for (const std::string& argument : ordinary) EXPECT_FALSE(argument.starts_with("--het-group")) << argument;
  EXPECT_THROW(remote_shell_command("n9", "c", {{"n1", -1, 0}}, "a"), std::runtime_error);
}

TEST(Allocation, ProcessorsPerNodeAreUnrolled) {
  EXPECT_THAT(parse_cpus_per_node("4(x2),8"), ElementsAre(4, 4, 8));
  EXPECT_THAT(parse_cpus_per_node(""), ElementsAre());
  EXPECT_THROW(parse_cpus_per_node("x"), std::runtime_error);
  EXPECT_THROW(parse_cpus_per_node("4(x0)"), std::runtime_error);
}

TEST(Allocation, NodesSurviveTheEnvironment) {
  const auto back = parse_allocated_nodes(to_text({{"n1", -1, 8}, {"n-2", 3, 0}}));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].name, "n-2");
  EXPECT_EQ(back[1].het_group, 3);
  EXPECT_EQ(back[0].het_group, -1);
  EXPECT_EQ(back[0].cpus, 8);
  EXPECT_THROW(parse_allocated_nodes("n1"), std::runtime_error);
}

TEST(Subprocess, OutputAndFailureAreReported) {
  EXPECT_EQ(run_and_read({"echo", "hi"}), "hi\n");
  EXPECT_THROW(run_and_read({"false"}), std::runtime_error);
  EXPECT_THROW(run_and_read({"/nowhere/at/all"}), std::runtime_error);
  EXPECT_THAT(describe_wait_status(9), HasSubstr("signal 9"));
  EXPECT_THAT(describe_wait_status(3 << 8), HasSubstr("exit code 3"));
}

// In a process of its own: it becomes a subreaper and ends everything below it.
TEST(Subprocess, EndAllChildrenLeavesNoOrphanAlive) {
  const std::string pid_file = testing::TempDir() + "/orphan." + std::to_string(getpid());
  EXPECT_EXIT(
      {
        become_subreaper();
        // The shell ends at once; its background child ignores SIGTERM and is adopted.
        const pid_t shell = spawn({"sh", "-c", "(trap '' TERM; exec sleep 1000) & echo $! > " + pid_file});
        waitpid(shell, nullptr, 0);
        end_all_children(0.3);
        _exit(child_processes().empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  pid_t orphan = 0;
  std::ifstream(pid_file) >> orphan;
  ASSERT_GT(orphan, 0);
  EXPECT_EQ(kill(orphan, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  std::filesystem::remove(pid_file);
}

TEST(RunDirectory, DocumentsAreReplacedWholeAndLinesAppended) {
  const std::string path = testing::TempDir() + "/run." + std::to_string(getpid());
  RunDirectory directory(path);
  directory.write_document("summary.json", "first");
  directory.write_document("summary.json", "second");
  EXPECT_EQ(read_text_file(directory.file("summary.json")), "second");
  directory.append_line("metrics.jsonl", "{}");
  directory.append_line("metrics.jsonl", "{\"a\":1}");
  EXPECT_EQ(read_text_file(directory.file("metrics.jsonl")), "{}\n{\"a\":1}\n");
  for (const auto& entry : std::filesystem::directory_iterator(path))
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr(".tmp"))) << "a temporary file stayed";
  std::filesystem::remove_all(path);
}

TEST(RunDirectory, AnUnwritablePlaceIsAnErrorThatNamesIt) {
  EXPECT_THROW(RunDirectory("/proc/nowhere"), std::runtime_error);
}

}  // namespace
}  // namespace sailor
