// The command lines of Slurm's programs, how their answers are read, and the variables of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "planner/scheduler/scheduler.h"
#include "spank_plugin/slurm/commands/command_lines.h"
#include "spank_plugin/slurm/commands/job_environment.h"
#include "spank_plugin/slurm/commands/job_share.h"
#include "spank_plugin/slurm/commands/scontrol.h"
#include "spank_plugin/slurm/inherited_options.h"
#include "spank_plugin/slurm/releases.h"

namespace sailor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

struct SbatchHelper : testing::Test {
  SbatchHelper() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(SbatchHelper, WaitsForANodeAsLongAsItIsUseful) {
  HelperRequest request{.main_job = "17"};
  request.excluded_nodes = {"n1", "n2"};
  request.feature = "fast";
  request.partition = "scavenge";
  request.end_s = 1000 + 5400;
  request.least_s = 400;
  request.qos = "low";
  request.gres = "gpu:a100";
  request.gpus = 4;
  request.script = "exec it";
  request.output_file = "/log";
  EXPECT_THAT(sbatch_helper(request, 1000),
              ElementsAre("sbatch", "--parsable", "--job-name=sailor-17-helper", "--nodes=1", "--no-requeue",
                          "--export=ALL", "--comment=sailor: helps job 17", "--exclusive", "--mem=0",
                          "--gres=gpu:a100:4", "--exclude=n1,n2", "--constraint=fast", "--partition=scavenge",
                          "--qos=low", "--time=90", "--time-min=7", "--deadline=1970-01-01T01:46:40",
                          "--output=/log", "--open-mode=append", "--wrap=exec it"));
  const auto late = sbatch_helper(request, 6390);
  EXPECT_THAT(late, IsSupersetOf({"--time=1", "--time-min=1", "--deadline=1970-01-01T01:47:30"}));
  const auto bare = sbatch_helper({.main_job = "17", .node = "n4"}, 1000);
  EXPECT_THAT(bare, Contains("--nodelist=n4"));
  for (const char* option : {"--time", "--deadline", "--account", "--qos", "--partition", "--reservation",
                             "--gres", "--exclude", "--constraint", "--output", "--nice"})
    EXPECT_THAT(bare, Not(Contains(StartsWith(option))));
}

TEST_F(SbatchHelper, OfAJobThatYieldsStartsAfterAllOthers) {
  HelperRequest request{.main_job = "17"};
  request.after_others = true;
  EXPECT_THAT(sbatch_helper(request, 0), Contains("--nice=2147483645"));
}

TEST(HelperJobName, IsRecognised) {
  EXPECT_TRUE(is_helper_job_name(helper_job_name("17")));
  for (const char* name :
       {"sailor-helper", "sailor--helper", "sailor-17", "sailor-1x-helper", "a-sailor-17-helper"})
    EXPECT_FALSE(is_helper_job_name(name)) << name;
}

TEST_F(SbatchHelper, OfASharedNodeTheGpusAreAskedForWithTheirPart) {
  HelperRequest request{.main_job = "17", .node = "n4"};
  request.whole_node = false;
  request.gpus = 2;
  request.gres = "gpu:1g.10gb";
  request.cpus = 8;
  request.memory_mb = 900;
  EXPECT_THAT(sbatch_helper(request, 0),
              IsSupersetOf({"--ntasks=1", "--gres=gpu:1g.10gb:2", "--cpus-per-task=8", "--mem=900M"}));
  EXPECT_THAT(sbatch_helper(request, 0), Not(Contains("--exclusive")));
}

TEST(SrunStep, OverlapsTakesNoMemoryAndNamesItsComponent) {
  EXPECT_THAT(srun_step({{"n2", 1, 4}, {"sh", "-c", "orted --x"}}),
              ElementsAre("srun", "--mpi=none", "--overlap", "--mem=0", "--no-kill", "--kill-on-bad-exit=0",
                          "--het-group=1", "-c", "4", "-w", "n2", "-N1", "-n1", "--export=ALL",
                          "--input=none", "sh", "-c", "orted --x"));
  for (const std::string& word : srun_step({{"n1", -1, 0}, {"c"}})) {
    EXPECT_FALSE(word.starts_with("--het-group")) << word;
  }
}

TEST(SrunStep, AsksForTheGpusOfItsNode) {
  AllocatedNode node{.name = "n4", .het_group = -1, .cpus = 8, .gpus = 2};
  EXPECT_THAT(srun_step({node, {"c"}}), Contains(std::string(kStepGpus) + "2"));
  node.gpus = 0;
  EXPECT_THAT(srun_step({node, {"c"}}), Not(Contains(StartsWith("--g"))));
}

TEST(SrunProgram, TakesTheWholeNodeOrHurries) {
  NodeProgram program{.job_name = "sailor-measure", .node = "n1", .partition = "p", .command = {"x", "-a"}};
  EXPECT_THAT(srun_program(program),
              ElementsAre("srun", "--job-name=sailor-measure", "--nodes=1", "--ntasks=1", "--nodelist=n1",
                          "--exclusive", "--mem=0", "--cpu-bind=none", "--partition=p", "x", "-a"));
  program.gpus = 4;
  EXPECT_THAT(srun_program(program), IsSupersetOf({"--exclusive", "--gres=gpu:4"}));
  program.gpus = 0;
  program.whole_node = false;
  program.immediate_s = 20;
  program.limit_s = 60;
  EXPECT_THAT(srun_program(program),
              ElementsAre("timeout", "60", "srun", "--immediate=20", "--quiet", "--job-name=sailor-measure",
                          "--nodes=1", "--ntasks=1", "--nodelist=n1", "--partition=p", "x", "-a"));
}

TEST(SallocOverParts, AComponentPerPart) {
  EXPECT_THAT(
      salloc_over_parts("j", {{"p", {"n1", "n2"}, 4}, {"q", {"m1"}}}, {"x", "-a"}),
      ElementsAre("salloc", "--quiet", "--job-name=j", "--exclusive", "--mem=0", "--nodes=2",
                  "--nodelist=n1,n2", "--partition=p", "--gres=gpu:4", ":", "--job-name=j", "--exclusive",
                  "--mem=0", "--nodes=1", "--nodelist=m1", "--partition=q", "x", "-a"));
}

TEST(Sbatch, AJobMayBeAskedAboutInsteadOfSubmitted) {
  JobRequest request;
  request.nodes = 2;
  request.time_limit_s = 61;
  EXPECT_THAT(sbatch_script(request, false),
              ElementsAre("sbatch", "--parsable", "--job-name=job", "--nodes=2", "--exclusive", "--mem=0",
                          "--time=2", "--requeue", "--wrap=true"));
  EXPECT_THAT(sbatch_script(request, true), Contains("--test-only"));
  const auto start = promised_start(
      "sbatch: Job 7 to start at 2026-01-02T03:04:05 using 8 processors on nodes n1 in partition p\n");
  ASSERT_TRUE(start);
  EXPECT_EQ(*start % 60, 5);
  EXPECT_FALSE(promised_start("allocation failure: Requested node configuration is not available\n"));
}

TEST(CommandLines, TheNextPartStartsWhenTheJobHasEnded) {
  const Resubmission submission{
      .options = {{"time", "60"}, {"exclusive"}}, .arguments = {"a b"}, .environment = {}};
  EXPECT_THAT(
      sbatch_next_part(submission, "long", "12", "/run/next-part"),
      ElementsAre("sbatch", "--time=60", "--exclusive", "--parsable", "--job-name=long", "--begin=now",
                  "--dependency=afterany:12", "--open-mode=append", "/run/next-part", "a b"));
  EXPECT_EQ(submitted_id("sbatch: warning: 12 things\n13\n"), "13");
  EXPECT_EQ(submitted_id("13;cluster\n"), "13");
  EXPECT_FALSE(submitted_id("sbatch: error: invalid\n"));
}

TEST(Scontrol, ValuesAndTimes) {
  const std::string line = "JobId=4 JobName=x Reason=None EndTime=2026-01-02T03:04:05 Deadline=N/A\n";
  EXPECT_EQ(scontrol_value(line, "JobId"), "4");
  EXPECT_EQ(scontrol_value(line, "Id"), "");
  EXPECT_EQ(scontrol_value(line, "Deadline"), "N/A");
  const auto end = time_in_scontrol(line, "EndTime");
  ASSERT_TRUE(end);
  EXPECT_EQ(*end % 60, 5);
  EXPECT_FALSE(time_in_scontrol("EndTime=Unknown", "EndTime"));
}

QueuedJob read_job(const std::string& state, const std::string& reason = "None") {
  return job_in_scontrol("JobId=7 JobName=x UserId=u(1) Requeue=1 Restarts=2 JobState=" + state +
                         " Reason=" + reason +
                         " StartTime=2026-01-02T03:04:05 EndTime=Unknown Partition=p NodeList=n[1-3] "
                         "BatchHost=n1 NumNodes=3 NumCPUs=24 WorkDir=/home/u\n")
      .value();
}

TEST(Scontrol, AJob) {
  const QueuedJob job = read_job("RUNNING");
  EXPECT_EQ(job.id, "7");
  EXPECT_EQ(job.state, JobState::running);
  EXPECT_EQ(job.restarts, 2);
  EXPECT_EQ(job.head_node, "n1");
  EXPECT_EQ(job.submit_directory, "/home/u");
  EXPECT_EQ(job.cpus, 24);
  EXPECT_THAT(job.nodes, ElementsAre("n1", "n2", "n3"));
  EXPECT_TRUE(job.start_s);
  EXPECT_FALSE(job.end_s);
  EXPECT_FALSE(job_in_scontrol(""));
  EXPECT_FALSE(job_in_scontrol("No jobs in the system\n"));
  EXPECT_THAT(job_in_scontrol("JobId=8 JobState=PENDING NodeList=(null)")->nodes, ElementsAre());
}

TEST(Scontrol, WhichJobsWerePushedOut) {
  EXPECT_FALSE(read_job("COMPLETING").out_of_time);
  EXPECT_FALSE(read_job("COMPLETING").preempted);
  EXPECT_TRUE(read_job("COMPLETING", "TimeLimit").out_of_time);
  EXPECT_TRUE(read_job("TIMEOUT").out_of_time);
  EXPECT_TRUE(read_job("PREEMPTED").preempted);
  EXPECT_TRUE(job_in_scontrol("JobId=8 JobState=RUNNING PreemptTime=2026-01-02T03:04:05")->preempted);
  EXPECT_FALSE(job_in_scontrol("JobId=8 JobState=RUNNING PreemptTime=None")->preempted);
}

TEST(Scontrol, TheGpusOfAJobByNode) {
  const QueuedJob job =
      job_in_scontrol(
          "JobId=7 JobState=RUNNING NodeList=a[1-2],t1 NumNodes=3 JOB_GRES=gpu:big:4,gpu:tiny:2 "
          "Nodes=a[1-2] CPU_IDs=0-5 Mem=2000 GRES=gpu:big:2(IDX:0-1) "
          "Nodes=t1 CPU_IDs=0-5 Mem=2000 GRES=gpu:tiny:1(IDX:0),gpu:1g.10gb:1(IDX:3),nic:2(IDX:0-1) "
          "Nodes=c1 CPU_IDs=0 Mem=10 GRES= MinCPUsNode=1\n")
          .value();
  EXPECT_THAT(job.gpus_on, ElementsAre(Pair("a1", 2), Pair("a2", 2), Pair("t1", 2)));
  const JobShare share =
      shares_in_scontrol("JobId=7 Nodes=a1 CPU_IDs=0-5,8 Mem=2000 GRES=gpu:2(IDX:0-1)").at("a1");
  EXPECT_EQ(share.cpus, 7);
  EXPECT_EQ(share.memory_mb, 2000);
  EXPECT_EQ(share.gres, "gpu:2(IDX:0-1)");
  EXPECT_THAT(read_job("RUNNING").gpus_on, ElementsAre()) << "without -d";
}

TEST(Scontrol, WhichJobsHaveFailed) {
  EXPECT_TRUE(read_job("FAILED", "NonZeroExitCode").failed);
  EXPECT_TRUE(read_job("NODE_FAIL").failed);
  EXPECT_EQ(read_job("NODE_FAIL").state, JobState::node_failed);
  for (const char* reason : {"JobLaunchFailure", "NonZeroExitCode", "NodeDown"})
    EXPECT_TRUE(read_job("COMPLETING", reason).failed) << reason;
  EXPECT_FALSE(read_job("COMPLETING").failed) << "it was cancelled, perhaps";
  EXPECT_EQ(read_job("BOOT_FAIL").state, JobState::other);
}

TEST(Scontrol, NodesThatAreLostOrTaken) {
  const auto node = [](const std::string& state) {
    return node_in_scontrol(
               "NodeName=n1 Arch=x86_64 CPUTot=8 ActiveFeatures=a,b Gres=gpu:big:4(S:0-1) State=" + state +
               " ThreadsPerCore=1 Partitions=p,all\n")
        .value();
  };
  for (const char* state : {"DOWN", "DOWN*", "MIXED*", "ALLOCATED+NOT_RESPONDING"})
    EXPECT_TRUE(node(state).lost()) << state;
  for (const char* state : {"IDLE", "MIXED", "IDLE+DRAIN"}) EXPECT_FALSE(node(state).lost()) << state;
  EXPECT_TRUE(node("IDLE").free());
  for (const char* state : {"MIXED", "ALLOCATED", "IDLE+DRAIN", "IDLE+COMPLETING", "DOWN"})
    EXPECT_FALSE(node(state).free()) << state;
  EXPECT_THAT(node("IDLE").partitions, ElementsAre("p", "all"));
  EXPECT_THAT(node("IDLE").features, ElementsAre("a", "b"));
  EXPECT_EQ(node("IDLE").gpus.at("big"), 4);
  EXPECT_EQ(node("IDLE").cpus, 8);
  EXPECT_FALSE(node_in_scontrol("Node n9 not found\n"));
}

struct Variables : testing::Test {
  void set(const std::string& name, const std::string& value) {
    names_.push_back(name);
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() override {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};
using JobEnvironment = Variables;

TEST_F(JobEnvironment, WhoAmI) {
  EXPECT_FALSE(site_scheduler().own_job());
  EXPECT_THROW(site_scheduler().own_allocation(), std::runtime_error);
  set("SLURM_JOB_ID", "17");
  set("SLURM_RESTART_COUNT", "2");
  set("SLURM_SUBMIT_DIR", "/home/u");
  set("SLURM_JOB_QOS", "long");
  set("SLURMD_NODENAME", "n3");
  const std::optional<OwnJob> job = site_scheduler().own_job();
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, "17");
  EXPECT_EQ(job->restarts, 2);
  EXPECT_EQ(job->submit_directory, "/home/u");
  EXPECT_EQ(job->qos, "long");
  EXPECT_EQ(job->account, "");
  EXPECT_EQ(site_scheduler().own_node(), "n3");
}

TEST_F(JobEnvironment, NodesOfAHeterogeneousJob) {
  const auto expand = [](const std::string& hosts) { return std::vector<std::string>{hosts}; };
  set("SLURM_JOB_ID", "17");
  set("SLURM_HET_SIZE", "2");
  set("SLURM_JOB_NODELIST_HET_GROUP_0", "n1");
  set("SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0", "8");
  set("SLURM_NODELIST_HET_GROUP_1", "m1");
  const std::vector<AllocatedNode> nodes = nodes_of_job(expand);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_EQ(nodes[0].het_group, 0);
  EXPECT_EQ(nodes[0].cpus, 8);
  EXPECT_EQ(nodes[1].name, "m1");
  EXPECT_EQ(nodes[1].het_group, 1);
  EXPECT_EQ(nodes[1].cpus, 0);
}

TEST_F(JobEnvironment, ProcessorsPerNodeAreUnrolled) {
  EXPECT_THAT(parse_cpus_per_node("4(x2),8"), ElementsAre(4, 4, 8));
  EXPECT_THAT(parse_cpus_per_node(""), ElementsAre());
  EXPECT_THROW(parse_cpus_per_node("x"), std::runtime_error);
  EXPECT_THROW(parse_cpus_per_node("4(x0)"), std::runtime_error);
  try {
    parse_cpus_per_node("two\nlines");
    ADD_FAILURE() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

TEST_F(JobEnvironment, WhatAHelpersStepIsStartedFromKnowsNoOtherJob) {
  set("SLURM_JOB_ID", "1");
  set("SLURM_HET_SIZE", "2");
  set("SALLOC_PARTITION", "x");
  set("SLURM_CONF", "/etc/slurm.conf");
  set("SAILOR_JOB_ID", "1");
  set("SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_image", "x.sqsh");
  site_scheduler().forget_own_job();
  EXPECT_STREQ(getenv("SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_image"), "x.sqsh")
      << "a helper runs in the job's container";
  for (const char* name : {"SLURM_JOB_ID", "SLURM_HET_SIZE", "SALLOC_PARTITION"})
    EXPECT_EQ(getenv(name), nullptr) << name;
  EXPECT_STREQ(getenv("SLURM_CONF"), "/etc/slurm.conf");
  EXPECT_STREQ(getenv("SAILOR_JOB_ID"), "1");
}

TEST_F(JobEnvironment, DefaultsOfOptionsAreForgottenTheJobIsNot) {
  set("SLURM_JOB_ID", "1");
  set("SLURM_CPUS_PER_TASK", "2");
  set("SLURM_GPUS_PER_TASK_HET_GROUP_0", "1");
  set("SLURM_JOB_NODELIST_HET_GROUP_0", "n1");
  set("SLURM_EXPORT_ENV", "NONE");
  set("SLURM_TRES_BIND", "gres/gpu:per_task:1");
  site_scheduler().forget_step_defaults();
  EXPECT_EQ(getenv("SLURM_GPUS_PER_TASK_HET_GROUP_0"), nullptr) << "srun --het-group=0 would read it";
  EXPECT_STREQ(getenv("SLURM_JOB_NODELIST_HET_GROUP_0"), "n1");
  EXPECT_EQ(getenv("SLURM_CPUS_PER_TASK"), nullptr);
  EXPECT_EQ(getenv("SLURM_EXPORT_ENV"), nullptr);
  EXPECT_EQ(getenv("SLURM_TRES_BIND"), nullptr) << "the agent of a node would have one GPU under 26.05";
  EXPECT_STREQ(getenv("SLURM_JOB_ID"), "1");
}

TEST_F(JobEnvironment, OptionsAndPlanOfAnEnclosingJobAreForgotten) {
  const char* const options[] = {"_SLURM_SPANK_OPTION_sailor_objective",
                                 "SLURM_SPANK__SLURM_SPANK_OPTION_sailor_objective"};
  const auto set_all = [&] {
    for (const char* option : options) set(option, "cost");
    set("SLURM_SPANK_SAILOR_PLAN_0", "x");
    set("SLURM_SPANK_SAILOR_PLAN_1", "z");
    set("SLURM_SPANK_OTHER", "y");
  };
  set_all();
  sailor_forget_inherited(0);
  for (const char* option : options) EXPECT_EQ(getenv(option), nullptr);
  EXPECT_FALSE(site_scheduler().carried_value("SAILOR_PLAN_0"));
  EXPECT_FALSE(site_scheduler().carried_value("SAILOR_PLAN_1"));
  EXPECT_EQ(site_scheduler().carried_value("OTHER"), "y");

  set_all();
  set("SLURM_JOB_ID", "1");
  sailor_forget_inherited(0);
  for (const char* option : options) EXPECT_EQ(getenv(option), nullptr);
  EXPECT_EQ(site_scheduler().carried_value("SAILOR_PLAN_0"), "x") << "a step runs under the job's plan";
  sailor_forget_inherited(1);
  EXPECT_FALSE(site_scheduler().carried_value("SAILOR_PLAN_0"));
}

}  // namespace
}  // namespace sailor
