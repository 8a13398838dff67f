#include "trainer/checkpoint/checkpoint_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

TEST(CheckpointDirectory, ATrainingThatBeginsAnewKeepsTheEarlierCheckpoints) {
  const ScratchDirectory scratch;
  EXPECT_EQ(set_checkpoints_aside(scratch.path()), "") << "there are none";
  EXPECT_TRUE(fs::is_empty(scratch.path()));
  for (const char* name : {"/step-5", "/step-10", "/step-15.tmp"})
    fs::create_directory(scratch.path() + name);
  EXPECT_EQ(set_checkpoints_aside(scratch.path()), scratch.path() + "/earlier-1");
  EXPECT_THAT(list_checkpoints(scratch.path()), testing::IsEmpty());
  EXPECT_THAT(list_checkpoints(scratch.path() + "/earlier-1"), testing::SizeIs(2));
  fs::create_directory(scratch.path() + "/step-5");
  EXPECT_EQ(set_checkpoints_aside(scratch.path()), scratch.path() + "/earlier-2");
}

}  // namespace
}  // namespace sailor
