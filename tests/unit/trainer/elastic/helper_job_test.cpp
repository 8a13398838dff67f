// What is asked of Slurm for a helper job, and how its answers are read.
#include "trainer/elastic/helper_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "trainer/elastic/launcher.h"
#include "trainer/elastic/scontrol_line.h"

namespace sailor {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

TEST(HelperJob, ExactlyThatNodeIsAskedForAtOnceOrNotAtAll) {
  HelperRequest request{.main_job = "17", .node = "n4"};
  request.partition = "fast";
  request.end_s = 1000 + 90;
  request.qos = "long";
  EXPECT_THAT(helper_allocation_command(request, 1000),
              IsSupersetOf({"salloc", "--no-shell", "--immediate=5", "--nodelist=n4", "--nodes=1",
                            "--exclusive", "--partition=fast", "--qos=long", "--time=2"}));
  EXPECT_THAT(helper_allocation_command(request, 5000), Contains("--time=1"));
  const auto bare = helper_allocation_command({.main_job = "17", .node = "n4"}, 1000);
  for (const char* option : {"--time", "--account", "--qos", "--partition", "--reservation"})
    EXPECT_THAT(bare, Not(Contains(StartsWith(option))));
}

TEST(HelperJob, TheKeepersCommandLineSaysWhatIsAsked) {
  HelperRequest request{.main_job = "17", .node = "n4"};
  request.end_s = 99;
  request.account = "us";
  const auto command = keeper_command("/x/sailor-agent", request);
  const HelperRequest back = parse_keeper({command.begin() + 2, command.end()});
  EXPECT_EQ(helper_allocation_command(back, 0), helper_allocation_command(request, 0));
  EXPECT_THROW(parse_keeper({"17"}), std::runtime_error);
}

TEST(HelperJob, TheGrantIsFoundInWhatSallocSays) {
  EXPECT_EQ(granted_job("salloc: Pending job allocation 7\nsalloc: Granted job allocation 42\n"), "42");
  EXPECT_FALSE(granted_job("salloc: error: Unable to allocate resources: Requested nodes are busy\n"));
  EXPECT_FALSE(granted_job("salloc: Granted job allocation "));
}

TEST(HelperJob, ItsStepNamesIt) {
  const AllocatedNode node{.name = "n4", .het_group = -1, .cpus = 8, .helper_job = "42"};
  EXPECT_THAT(remote_shell_command("n4", "true", {node}, "/x/sailor-agent"),
              IsSupersetOf({"--jobid=42", "-c", "8", "n4"}));
}

TEST(HelperJob, WhatItsStepIsStartedFromKnowsNoOtherJob) {
  setenv("SLURM_JOB_ID", "1", 1);
  setenv("SLURM_HET_SIZE", "2", 1);
  setenv("SALLOC_PARTITION", "x", 1);
  setenv("SLURM_CONF", "/etc/slurm.conf", 1);
  setenv("SAILOR_JOB_ID", "1", 1);
  forget_slurm_job();
  for (const char* name : {"SLURM_JOB_ID", "SLURM_HET_SIZE", "SALLOC_PARTITION"})
    EXPECT_EQ(getenv(name), nullptr) << name;
  EXPECT_STREQ(getenv("SLURM_CONF"), "/etc/slurm.conf");
  EXPECT_STREQ(getenv("SAILOR_JOB_ID"), "1");
  unsetenv("SLURM_CONF");
  unsetenv("SAILOR_JOB_ID");
}

TEST(ScontrolLine, ValuesAndTimes) {
  const std::string line = "JobId=4 JobName=x Reason=None EndTime=2026-01-02T03:04:05 Deadline=N/A\n";
  EXPECT_EQ(scontrol_value(line, "JobId"), "4");
  EXPECT_EQ(scontrol_value(line, "Id"), "");
  EXPECT_EQ(scontrol_value(line, "Deadline"), "N/A");
  const auto end = time_in_scontrol(line, "EndTime");
  ASSERT_TRUE(end);
  EXPECT_EQ(*end % 60, 5);
  EXPECT_FALSE(time_in_scontrol("EndTime=Unknown", "EndTime"));
}

}  // namespace
}  // namespace sailor
