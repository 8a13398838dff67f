// Leaf switches from Slurm's own words.
#include "spank_plugin/slurm/leaf_switches.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

TEST(LeafSwitches, AreThoseOfLevelZero) {
  EXPECT_THAT(parse_leaf_switches("SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2],x\n"
                                  "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n3\n"
                                  "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-3],x Switches=s[1-2]\n"),
              UnorderedElementsAre(Pair("n1", "s1"), Pair("n2", "s1"), Pair("x", "s1"), Pair("n3", "s2")));
}

TEST(LeafSwitches, ANodeOnSeveralHasTheFirstByName) {
  EXPECT_THAT(parse_leaf_switches("SwitchName=s2 Level=0 Nodes=n1\nSwitchName=s1 Level=0 Nodes=n1\n"),
              UnorderedElementsAre(Pair("n1", "s1")));
}

TEST(LeafSwitches, OtherWordsAreNone) {
  EXPECT_TRUE(parse_leaf_switches("").empty());
  EXPECT_TRUE(parse_leaf_switches("BlockName=b1 BlockIndex=0 Nodes=n[1-4] BlockSize=4\n").empty());
}

TEST(LeafSwitches, AreNotAskedForWithoutAFileOfATopology) {
  const ScratchDirectory scratch;
  const std::string directory = scratch.path();
  EXPECT_FALSE(has_no_topology(directory)) << "Slurm's configuration is elsewhere";
  std::ofstream(directory + "/slurm.conf") << "ClusterName=x\n";
  EXPECT_TRUE(has_no_topology(directory));
  for (const char* file : {"topology.conf", "topology.yaml"}) {
    std::ofstream(directory + "/" + file) << "\n";
    EXPECT_FALSE(has_no_topology(directory)) << file;
    std::filesystem::remove(directory + "/" + file);
  }
}

}  // namespace
}  // namespace sailor
