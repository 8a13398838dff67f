#include "spank_plugin/slurm/setup_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

ClusterSetup some_setup() {
  SlurmPartition fast;
  fast.name = "fast";
  fast.is_default = fast.whole_nodes = true;
  fast.allowed_accounts = {"ml"};
  fast.denied_qos = {"low", "old"};
  fast.max_nodes = 4;
  fast.max_time_s = 3600;
  fast.qos = "part";
  fast.billing_weights = "CPU=1,GRES/gpu=8";
  fast.memory_per_cpu_mb = 2000;
  fast.nodes = {"a1", "a2"};
  SlurmPartition closed;
  closed.name = "closed";
  closed.up = false;
  closed.root_only = closed.needs_reservation = true;
  closed.denied_accounts = {"x"};
  closed.allowed_qos = {"y"};
  closed.default_time_s = 60;
  closed.memory_per_node_mb = 500;
  return {{fast, closed}, {{"maintenance", 2000, 3000, {"a1"}, "fast"}}, {{"a1", "s1"}, {"a2", "s2"}}};
}

class SetupCacheTest : public testing::Test {
 protected:
  std::string file() const { return directory + "/setup-c.json"; }

  const ScratchDirectory made;
  std::string directory = made.path() + "/sailor";
  SetupCache cache{"c", directory};
};

TEST_F(SetupCacheTest, KeepsAllForAMinute) {
  EXPECT_FALSE(cache.find(1000));
  cache.keep(some_setup(), 1000);
  EXPECT_EQ(cache.find(1000), some_setup());
  EXPECT_EQ(cache.find(1000 + SetupCache::kLife_s), some_setup());
  EXPECT_FALSE(cache.find(1001 + SetupCache::kLife_s));
  EXPECT_FALSE(cache.find(999)) << "the clock was set back";
  cache.keep({}, 1010);
  EXPECT_EQ(cache.find(1010), ClusterSetup());
}

TEST_F(SetupCacheTest, IsOfOneCluster) {
  cache.keep(some_setup(), 1000);
  EXPECT_FALSE(SetupCache("d", directory).find(1000));
  const SetupCache unknown("", directory);
  unknown.keep(some_setup(), 1000);
  EXPECT_FALSE(unknown.find(1000));
}

TEST_F(SetupCacheTest, DamagedFilesAreAsGoodAsNone) {
  for (const std::string text :
       {"", "{", "[]", R"({"version": 1, "read_at": 1000})", R"({"version": 2, "read_at": 1000})",
        R"({"version": 1, "read_at": 1e300, "partitions": [], "reservations": [], "leaf_switches": {}})",
        R"({"version": 1, "read_at": 1000, "partitions": [7], "reservations": [], "leaf_switches": {}})"}) {
    cache.keep(some_setup(), 1000);
    std::ofstream(file()) << text;
    EXPECT_FALSE(cache.find(1000)) << text;
  }
  cache.keep(some_setup(), 1000);
  EXPECT_TRUE(cache.find(1000));
}

TEST_F(SetupCacheTest, NothingIsReadFromOrWrittenToDirectoriesOfOthers) {
  cache.keep(some_setup(), 1000);
  ASSERT_EQ(chmod(directory.c_str(), 0770), 0);
  EXPECT_FALSE(cache.find(1000)) << "the group could have written it";
  fs::remove(file());
  cache.keep(some_setup(), 1000);
  EXPECT_FALSE(fs::exists(file()));
  ASSERT_EQ(chmod(directory.c_str(), 0700), 0);
  fs::rename(directory, directory + "-elsewhere");
  fs::create_symlink(directory + "-elsewhere", directory);
  cache.keep(some_setup(), 1000);
  EXPECT_FALSE(cache.find(1000)) << "a link may lead anywhere";
}

TEST_F(SetupCacheTest, WithoutADirectoryNothingIsKept) {
  const SetupCache nowhere("c", made.path() + "/missing/sailor");
  nowhere.keep(some_setup(), 1000);
  EXPECT_FALSE(nowhere.find(1000));
}

}  // namespace
}  // namespace sailor
