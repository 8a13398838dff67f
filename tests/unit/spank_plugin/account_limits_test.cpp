#include "spank_plugin/slurm/account_limits.h"

#include <gmock/gmock.h>

namespace sailor {
namespace {

using Of = TresLimit::Of;
using testing::ElementsAre;
using testing::IsEmpty;

// User u in the accounts physics (the default) and biology, both below root; three QOS.
class AccountLimitsTest : public testing::Test {
 protected:
  AccountLimitsTest() {
    accounting.qos = {{.name = "normal"}, {.name = "limited"}, {.name = "of-fast"}};
    accounting.associations = {{.id = 1, .account = "root", .user = "", .partition = "", .parent = ""},
                               {.id = 2, .account = "physics", .user = "", .partition = "", .parent = "root"},
                               {.id = 3,
                                .account = "physics",
                                .user = "u",
                                .partition = "",
                                .parent = "",
                                .is_default = true,
                                .default_qos = "normal"},
                               {.id = 4, .account = "biology", .user = "", .partition = "", .parent = "root"},
                               {.id = 5, .account = "biology", .user = "u", .partition = "", .parent = ""}};
    fast.name = "fast";
  }

  AccountLimits& of_qos(size_t index) { return accounting.qos[index].limits; }
  AccountLimits& of_association(uint32_t id) { return accounting.associations[id - 1].limits; }
  JobLimits limits() { return limits_in(fast, with_defaults(wishes, accounting), accounting, waits); }
  std::vector<std::string> reasons() {
    std::vector<std::string> out;
    for (const JobLimit& limit : limits().on_tres) out.push_back(limit.reason);
    return out;
  }

  Accounting accounting;
  PartitionWishes wishes;
  SlurmPartition fast;
  bool waits = false;
};

TEST_F(AccountLimitsTest, NoLimitsHoldWhereNoneAreSet) {
  EXPECT_THAT(limits().on_tres, IsEmpty());
  EXPECT_EQ(limits().obstacle, "");
}

TEST_F(AccountLimitsTest, AccountAndQosAreThoseThatSlurmTakes) {
  EXPECT_EQ(with_defaults(wishes, accounting).account, "physics");
  EXPECT_EQ(with_defaults(wishes, accounting).qos, "normal");
  wishes.account = "biology";
  wishes.qos = "limited";
  EXPECT_EQ(with_defaults(wishes, accounting).account, "biology");
  EXPECT_EQ(with_defaults(wishes, accounting).qos, "limited");
  wishes.account = "unknown";
  wishes.qos = "";
  EXPECT_EQ(with_defaults(wishes, accounting).qos, "");
}

TEST_F(AccountLimitsTest, WhatIsInUseCountsUnlessTheJobWaitsForIt) {
  of_qos(0).tres = {{Of::user, "gres/gpu", 8, 6}, {Of::job, "gres/gpu:a100", 4, 0}};
  const std::vector<JobLimit> found = limits().on_tres;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].most, 2);
  EXPECT_EQ(found[0].ever, 8);
  EXPECT_EQ(found[0].reason, "QOS normal allows 8 GPUs per user, 6 are in use: at most 2");
  EXPECT_EQ(found[1].most, 4);
  EXPECT_EQ(found[1].reason, "QOS normal allows 4 a100 GPUs per job");
  waits = true;
  EXPECT_EQ(limits().on_tres[0].most, 8);
  EXPECT_EQ(limits().on_tres[0].reason, "QOS normal allows 8 GPUs per user");
}

TEST_F(AccountLimitsTest, MoreInUseThanIsAllowedLeavesNothing) {
  of_qos(0).tres = {{Of::group, "gres/gpu", 4, 7}};
  EXPECT_EQ(limits().on_tres.at(0).most, 0);
}

// Per limit: the QOS of the partition, that of the job, the association.
TEST_F(AccountLimitsTest, TheFirstOfTheOrderHolds) {
  of_association(3).tres = {{Of::job, "gres/gpu", 1, 0}, {Of::job, "node", 3, 0}};
  EXPECT_THAT(reasons(), ElementsAre("account physics for user u allows 1 GPU per job",
                                     "account physics for user u allows 3 nodes per job"));
  of_qos(0).tres = {{Of::job, "gres/gpu", 2, 0}};
  EXPECT_THAT(reasons(), ElementsAre("QOS normal allows 2 GPUs per job",
                                     "account physics for user u allows 3 nodes per job"));
  fast.qos = "of-fast";
  of_qos(2).tres = {{Of::job, "gres/gpu", 5, 0}};
  EXPECT_THAT(reasons(), ElementsAre("QOS of-fast allows 5 GPUs per job",
                                     "account physics for user u allows 3 nodes per job"));
  accounting.qos[0].before_partition = true;
  EXPECT_THAT(reasons(), ElementsAre("QOS normal allows 2 GPUs per job",
                                     "account physics for user u allows 3 nodes per job"));
}

TEST_F(AccountLimitsTest, GroupLimitsOfAllAccountsAboveHoldTogether) {
  of_association(1).tres = {{Of::group, "gres/gpu", 20, 0}, {Of::job, "gres/gpu", 1, 0}};
  of_association(2).tres = {{Of::group, "gres/gpu", 10, 4}};
  of_association(4).tres = {{Of::group, "gres/gpu", 3, 0}};  // of another account
  EXPECT_THAT(reasons(), ElementsAre("account physics allows 10 GPUs in all, 4 are in use: at most 6",
                                     "account root allows 20 GPUs in all"));
  of_qos(0).tres = {{Of::group, "gres/gpu", 30, 1}};
  EXPECT_THAT(reasons(), ElementsAre("QOS normal allows 30 GPUs in all, 1 is in use: at most 29"));
}

TEST_F(AccountLimitsTest, AnAssociationMayHoldForAPartition) {
  accounting.associations.push_back({.id = 6,
                                     .account = "physics",
                                     .user = "u",
                                     .partition = "fast",
                                     .parent = "",
                                     .limits = {{{Of::job, "gres/gpu", 7, 0}}, {}}});
  EXPECT_THAT(reasons(), ElementsAre("account physics for user u allows 7 GPUs per job"));
  fast.name = "slow";
  EXPECT_THAT(reasons(), IsEmpty());
}

TEST_F(AccountLimitsTest, MinutesLimitTheGpusOfTheTimeLimit) {
  of_association(2).tres = {{Of::group_minutes, "gres/gpu", 1000, 640}};
  of_qos(0).tres = {{Of::job_minutes, "gres/gpu", 500, 0}};
  EXPECT_THAT(reasons(), IsEmpty()) << "without a time limit";
  wishes.time_limit_s = 100 * 60;
  EXPECT_THAT(reasons(),
              ElementsAre("QOS normal allows 500 GPU minutes per job: at most 5 GPUs for 100 minutes",
                          "account physics has 360 of 1000 GPU minutes left: at most 3 GPUs for 100 "
                          "minutes"));
  wishes.time_limit_s = {};
  fast.max_time_s = 180 * 60;
  EXPECT_EQ(limits().on_tres[0].most, 2);
  of_qos(0).max_wall_s = 50 * 60;  // then also the job's own limit
  EXPECT_EQ(limits().on_tres[0].most, 10);
}

TEST_F(AccountLimitsTest, JobsThatAreTooLongAreNotStarted) {
  of_association(3).max_wall_s = 3600;
  wishes.time_limit_s = 3600;
  EXPECT_EQ(limits().obstacle, "");
  wishes.time_limit_s = 3660;
  EXPECT_EQ(limits().obstacle, "account physics for user u allows jobs of 60 minutes at most");
  of_qos(0).max_wall_s = 7200;
  EXPECT_EQ(limits().obstacle, "");
}

TEST_F(AccountLimitsTest, JobsProcessorsAndMemoryAreCounted) {
  of_qos(0).tres = {{Of::user, "job", 2, 2},
                    {Of::user, "cpu", 32, 1},
                    {Of::user, "mem", 1000, 0},
                    {Of::user, "energy", 1, 0}};
  EXPECT_THAT(reasons(), ElementsAre("QOS normal allows 2 jobs per user, 2 are running",
                                     "QOS normal allows 32 CPUs per user, 1 is in use: at most 31",
                                     "QOS normal allows 1000 MB of memory per user"));
}

TEST_F(AccountLimitsTest, WhatAnEndingJobHoldsIsFree) {
  of_qos(0).tres = {{Of::user, "gres/gpu", 8, 7},
                    {Of::user, "gres/gpu:x", 8, 3},
                    {Of::user, "node", 2, 2},
                    {Of::job, "cpu", 9, 0}};
  of_association(2).tres = {{Of::group, "cpu", 40, 30}, {Of::group, "mem", 100, 50}};
  forget_use(accounting, {{"n1", {8, 20, "gpu:x:2(IDX:0-1)"}}, {"n2", {8, 20, "gpu:y:4(IDX:0-3)"}}});
  EXPECT_EQ(of_qos(0).tres[0].used, 1);
  EXPECT_EQ(of_qos(0).tres[1].used, 1);
  EXPECT_EQ(of_qos(0).tres[2].used, 0);
  EXPECT_EQ(of_qos(0).tres[3].used, 0);
  EXPECT_EQ(of_association(2).tres[0].used, 14);
  EXPECT_EQ(of_association(2).tres[1].used, 10);
}

// As Slurm 22.05 prints it, shortened.
TEST(AssociationUse, IsReadFromScontrol) {
  const std::string text =
      "Current Association Manager state\n"
      "Association Records\n"
      "ClusterName=c Account=root UserName= Partition= Priority=0 ID=1 "
      "SharesRaw/Norm/Level/Factor=1/0.00/1/0.00 "
      "GrpJobs=N(2) GrpJobsAccrue=N(0) GrpWall=N(0.00) GrpTRES=cpu=N(2),gres/gpu=N(3) "
      "GrpTRESMins=cpu=N(0),gres/gpu=N(7) GrpTRESRunMins=cpu=N(120),gres/gpu=N(120) MaxJobs= MaxTRESPJ=\n"
      "ClusterName=c Account=physics UserName=u(999) Partition= Priority=0 ID=3 GrpJobs=4(1) "
      "GrpTRES=cpu=N(2),gres/gpu=6(2),gres/gpu:a100=N(2) GrpTRESMins=gres/gpu=100(11) "
      "GrpTRESRunMins=gres/gpu=N(9)\n"
      "QOS Records\n"
      "QOS=normal(1) UsageRaw=0.0 GrpJobs=N(9) ID=3 GrpTRES=gres/gpu=N(9)\n";
  const std::map<uint32_t, AssociationUse> uses = parse_association_use(text);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses.at(1).jobs, 2);
  EXPECT_EQ(uses.at(1).tres.at("gres/gpu"), 3);
  EXPECT_EQ(uses.at(1).minutes.at("gres/gpu"), 127);
  EXPECT_EQ(uses.at(3).jobs, 1);
  EXPECT_EQ(uses.at(3).tres.at("gres/gpu"), 2);
  EXPECT_EQ(uses.at(3).tres.at("gres/gpu:a100"), 2);
  EXPECT_EQ(uses.at(3).minutes.at("gres/gpu"), 20);
  EXPECT_THAT(parse_association_use("no such thing\n"), IsEmpty());
  const auto large = parse_association_use(
      "ClusterName=c ID=1 GrpTRESMins=cpu=N(9223372036854775807) "
      "GrpTRESRunMins=cpu=N(9223372036854775807)\n");
  EXPECT_GT(large.at(1).minutes.at("cpu"), 0);
}

}  // namespace
}  // namespace sailor
