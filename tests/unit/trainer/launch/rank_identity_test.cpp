// What the system sees of a rank: title, short name, environment.
#include "trainer/launch/rank_identity.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "trainer/process/process_title.h"

namespace sailor {
namespace {

std::string read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream content;
  content << stream.rdbuf();
  return content.str();
}

// Runs `body` in a child, because a title stays; what it returns is the test's.
template <typename Body>
void in_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(RankIdentity, IsInTitleNameAndEnvironment) {
  in_child([] {
    const std::string environment = read("/proc/self/environ");
    const size_t room = read("/proc/self/cmdline").size();
    RankSlot slot;
    slot.rank = 13;
    slot.pipeline = 2;
    slot.stage = 1;
    slot.tp_rank = 3;
    slot.shape.tp = 4;
    announce_rank(slot, 5);
    const std::string title = "sailor: rank 13 p2 s1 t3/4 g5";
    EXPECT_EQ(rank_title(slot, 5), title);
    EXPECT_EQ(std::string(read("/proc/self/cmdline").c_str()), title.substr(0, room - 1));
    EXPECT_EQ(read("/proc/self/comm"), "sailor-rank 13\n");
    EXPECT_EQ(read("/proc/self/environ"), environment)
        << "as it was, for those who look for a job's processes";
    EXPECT_STREQ(getenv("SAILOR_RANK"), "13");
    EXPECT_STREQ(getenv("SAILOR_PIPELINE"), "2");
    EXPECT_STREQ(getenv("SAILOR_STAGE"), "1");
    EXPECT_STREQ(getenv("SAILOR_TP_RANK"), "3");
    EXPECT_STREQ(getenv("SAILOR_GENERATION"), "5");
    announce_rank(slot, 6);
    EXPECT_STREQ(getenv("SAILOR_GENERATION"), "6");
    EXPECT_THAT(read("/proc/self/cmdline"), testing::HasSubstr("sailor: rank 13"));
  });
}

TEST(RankIdentity, ATitleIsCutToTheRoomThatThereIs) {
  in_child([] {
    const std::string name = program_invocation_short_name;
    const size_t room = read("/proc/self/cmdline").size();
    set_process_title(std::string(100'000, 'x'), "short");
    EXPECT_EQ(read("/proc/self/cmdline").size(), room);
    EXPECT_EQ(read("/proc/self/cmdline").back(), '\0');
    EXPECT_EQ(program_invocation_short_name, name);
    set_process_title("y", "short");
    EXPECT_STREQ(read("/proc/self/cmdline").c_str(), "y");
  });
}

}  // namespace
}  // namespace sailor
