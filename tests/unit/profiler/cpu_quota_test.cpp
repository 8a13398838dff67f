// Quotas of control groups, of both versions, in folders like the kernel's.
#include "profiler/cpu_quota.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

struct CpuQuotaTest : testing::Test {
  ScratchDirectory scratch;

  void file(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = scratch.path() + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  CpuQuota quota() { return cpu_quota(scratch.path() + "/proc", scratch.path()); }
};

TEST_F(CpuQuotaTest, TheTightestOfAllGroupsAboveCounts) {
  file("proc/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
  file("proc/cgroup", "0::/user.slice/app\n");
  file("sys/fs/cgroup/user.slice/app/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(quota().processors));
  file("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota().processors, 1.5);
  EXPECT_DOUBLE_EQ(quota().period_s, 0.1);
  file("sys/fs/cgroup/user.slice/app/cpu.max", "5000 10000\n");
  EXPECT_DOUBLE_EQ(quota().processors, 0.5);
  EXPECT_DOUBLE_EQ(quota().period_s, 0.01);
}

TEST_F(CpuQuotaTest, TheFirstVersionHasAMountPerController) {
  file("proc/mountinfo",
       "33 31 0:30 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
       "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  file("proc/cgroup", "3:cpuset:/other\n1:cpu,cpuacct:/job\n");
  file("cg/cpu/other/cpu.cfs_quota_us", "1000\n");
  file("cg/cpu/job/cpu.cfs_period_us", "100000\n");
  file("cg/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(quota().processors));
  file("cg/cpu/job/cpu.cfs_quota_us", "200000\n");
  EXPECT_DOUBLE_EQ(quota().processors, 2);
}

TEST_F(CpuQuotaTest, AContainerSeesItsGroupAsTheTop) {
  file("proc/mountinfo", "30 23 0:26 /docker/7f /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  file("proc/cgroup", "0::/docker/7f\n");
  file("sys/fs/cgroup/cpu.max", "25000 100000\n");
  EXPECT_DOUBLE_EQ(quota().processors, 0.25);
}

TEST_F(CpuQuotaTest, NothingToReadIsNoQuota) {
  EXPECT_TRUE(std::isinf(quota().processors));
  file("proc/mountinfo", "garbage\n1 2 - cgroup2\n");
  file("proc/cgroup", "garbage");
  EXPECT_TRUE(std::isinf(quota().processors));
}

}  // namespace
}  // namespace sailor
