// Ranks on the nodes of a job without mpirun, with a script instead of sailor-agent: all "nodes" are this
// machine.
#include "trainer/launch/node_ranks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "planner/process/scratch_directory.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

// step NODE AGENT local-ranks N PROGRAM...
constexpr const char* kAgent = R"(#!/bin/sh
[ "$1" = step ] || exit 99
[ "$2" != absent ] || exit 0
n=$5 node=$2 first=$SAILOR_RANK code=0
shift 5
for i in $(seq "$n"); do
  SAILOR_NODE=$node SAILOR_RANK=$((first + i - 1)) "$@" || code=$?
done
echo "$code" >"$SAILOR_RENDEZVOUS/started-$first"
[ -z "$SAILOR_STAYS" ] || exec sleep 20 >/dev/null 2>&1
exit 0
)";

// In a process of its own: it takes signals, and every child, to itself. 98: the directory of the meeting is
// left.
int start(const std::string& hosts, const char* script, bool with_agents) {
  const ScratchDirectory directory;
  const std::string agent = directory.path() + "/agent";
  std::ofstream(agent) << kAgent;
  chmod(agent.c_str(), 0755);
  setenv("SAILOR_RUN_DIRECTORY", directory.path().c_str(), 1);
  const int code = run_node_ranks(parse_host_ranks(hosts), {"sh", "-c", script}, agent, with_agents);
  const auto files = std::filesystem::directory_iterator(directory.path());
  const bool only_agent = std::distance(begin(files), end(files)) == 1;
  return code == 0 && !only_agent ? 98 : code;
}
// No death test: that would also wait for what the steps leave.
int code_of(const std::string& hosts, const char* script, bool with_agents = true) {
  const pid_t child = fork();
  if (child == 0) _exit(start(hosts, script, with_agents));
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(NodeRanks, EachKnowsItsNumberAndNode) {
  constexpr const char* kScript = R"sh(case $SAILOR_NODE$SAILOR_RANK/$SAILOR_RANKS in
n10/3 | n11/3 | n22/3) ;;
*) exit 9 ;;
esac
[ "$(stat -c %a "$SAILOR_RENDEZVOUS")" = 700 ])sh";
  EXPECT_EQ(code_of("n1:2,n2:1", kScript, /*with_agents=*/false), 0);
}

TEST(NodeRanks, StepsWithAgentsGoOn) {
  const auto began = std::chrono::steady_clock::now();
  setenv("SAILOR_STAYS", "yes", 1);
  EXPECT_EQ(code_of("n1:1,n2:1", "true"), 0);
  unsetenv("SAILOR_STAYS");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

TEST(NodeRanks, AStartThatFailsEndsAll) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of("n1:1,n2:1", R"([ "$SAILOR_RANK" != 1 ] || exit 7; exec sleep 20 >/dev/null 2>&1)"), 7);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
  EXPECT_EQ(code_of("absent:1", "true"), 1);
}

TEST(NodeRanks, HostsSurviveTheCommandLine) {
  const auto hosts = parse_host_ranks(to_text(std::vector<HostRanks>{{"n1", 3}, {"n-2", 12}}));
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[1].node, "n-2");
  EXPECT_EQ(hosts[1].ranks, 12);
  for (const char* wrong : {"n1", "n1:0", "n1:x", "n1:1.5"})
    EXPECT_THROW(parse_host_ranks(wrong), InputError);
}

}  // namespace
}  // namespace sailor
