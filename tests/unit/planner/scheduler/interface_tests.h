// The contract of Scheduler: one suite for all implementations. A test file that includes this instantiates
//
//     INSTANTIATE_TEST_SUITE_P(NAME, SchedulerInterface, testing::Values(&make_bench));
//     INSTANTIATE_TEST_SUITE_P(NAME, SchedulerInsideAJob, testing::Values(&make_bench));
//
// the second one only if the process is in a job, or can enter one.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"

namespace sailor {

// A scheduler whose cluster nobody else uses.
class SchedulerBench {
 public:
  virtual ~SchedulerBench() = default;
  virtual Scheduler& scheduler() = 0;
  // Two free nodes of one partition that allows jobs of an hour.
  virtual std::vector<std::string> nodes() = 0;
  virtual std::string partition() = 0;
  // Lets time pass until `done`; false if it is not after a minute.
  virtual bool wait(const std::function<bool()>& done) = 0;
  // Makes the process one of a job on the first of the nodes, if it is not yet.
  virtual void enter() {}
};

class SchedulerInterface : public testing::TestWithParam<std::unique_ptr<SchedulerBench> (*)()> {
 protected:
  static constexpr int kLimit_s = 600;

  SchedulerInterface() : bench(GetParam()()), scheduler(bench->scheduler()), nodes(bench->nodes()) {}
  void TearDown() override {
    for (const std::string& job : jobs) scheduler.give_back(job);
    EXPECT_TRUE(bench->wait([&] { return is_free(nodes[0]) && is_free(nodes[1]); }));
  }

  JobRequest request(const std::string& script) const {
    JobRequest request{.name = "interface", .partition = bench->partition(), .script = script};
    request.node_names = {nodes[0]};
    request.time_limit_s = kLimit_s;
    return request;
  }
  std::string submit(const JobRequest& request) {
    jobs.push_back(scheduler.submit(request));
    return jobs.back();
  }
  HelperRequest helper(const std::string& script) const {
    HelperRequest request{.main_job = "4711", .node = nodes[1], .partition = bench->partition()};
    request.script = script;
    return request;
  }
  std::string submit(const HelperRequest& request) {
    jobs.push_back(scheduler.submit_helper(request));
    return jobs.back();
  }
  bool is_free(const std::string& name) {
    const std::optional<NodeInfo> node = scheduler.find_node(name);
    return node && node->free();
  }
  JobState state(const std::string& job) { return scheduler.find_job(job).value_or(QueuedJob{}).state; }
  bool reaches(const std::string& job, JobState wanted) {
    return bench->wait([&] { return state(job) == wanted; });
  }
  std::optional<int> end_of(StepId step) {
    std::optional<int> status;
    bench->wait([&] { return (status = scheduler.step_end(step)).has_value(); });
    return status;
  }
  NodeProgram program(const std::vector<std::string>& command) const {
    return {.job_name = "interface", .node = nodes[0], .partition = bench->partition(), .command = command};
  }

  std::unique_ptr<SchedulerBench> bench;
  Scheduler& scheduler;
  const std::vector<std::string> nodes;
  std::vector<std::string> jobs;  // cancelled at the end
};

TEST_P(SchedulerInterface, OutsideAJobThereIsNone) {
  EXPECT_FALSE(scheduler.own_job());
  EXPECT_EQ(scheduler.own_node(), "");
  EXPECT_FALSE(scheduler.carried_value("SAILOR_JOB"));
  EXPECT_THROW(scheduler.own_allocation(), std::runtime_error);
}

TEST_P(SchedulerInterface, NodesAreListedAndFoundByName) {
  const std::vector<NodeInfo> all = scheduler.nodes();
  for (const std::string& name : nodes) {
    const auto listed =
        std::find_if(all.begin(), all.end(), [&](const NodeInfo& n) { return n.name == name; });
    ASSERT_NE(listed, all.end()) << name;
    EXPECT_THAT(listed->partitions, testing::Contains(bench->partition()));
    EXPECT_GT(listed->cpus, 0);
    EXPECT_FALSE(listed->gpus.empty());
    const auto found = scheduler.find_node(name);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->cpus, listed->cpus);
    EXPECT_TRUE(found->free());
  }
  EXPECT_FALSE(scheduler.find_node("no-such-node"));
}

TEST_P(SchedulerInterface, AJobRunsOnItsNodeAndEnds) {
  const std::string id = submit(request("sleep 5"));
  ASSERT_TRUE(reaches(id, JobState::running));
  const QueuedJob job = scheduler.find_job(id).value();
  EXPECT_EQ(job.id, id);
  EXPECT_EQ(job.name, "interface");
  EXPECT_EQ(job.partition, bench->partition());
  EXPECT_THAT(job.nodes, testing::ElementsAre(nodes[0]));
  EXPECT_EQ(job.head_node, nodes[0]);
  EXPECT_GT(job.cpus, 0);
  EXPECT_EQ(job.restarts, 0);
  EXPECT_EQ(job.end_s.value() - job.start_s.value(), kLimit_s);
  EXPECT_FALSE(is_free(nodes[0]));
  EXPECT_TRUE(is_free(nodes[1]));
  const std::vector<QueuedJob> queue = scheduler.queue();
  EXPECT_TRUE(std::any_of(queue.begin(), queue.end(), [&](const QueuedJob& one) { return one.id == id; }));
  EXPECT_TRUE(reaches(id, JobState::completed));
  EXPECT_FALSE(scheduler.find_job(id)->failed);
}

TEST_P(SchedulerInterface, AScriptThatEndsBadlyIsAFailure) {
  const std::string id = submit(request("false"));
  ASSERT_TRUE(reaches(id, JobState::failed));
  EXPECT_TRUE(scheduler.find_job(id)->failed);
}

TEST_P(SchedulerInterface, WhatNobodyKnowsIsNotFound) {
  EXPECT_FALSE(scheduler.find_job("999999"));
  scheduler.give_back("999999");
  scheduler.forget_node_names("999999");
  scheduler.requeue("999999");
}

TEST_P(SchedulerInterface, AJobWaitsForANodeThatIsTaken) {
  const std::string first = submit(request("sleep 300"));
  ASSERT_TRUE(reaches(first, JobState::running));
  const int64_t end_s = scheduler.find_job(first)->end_s.value();
  const std::optional<int64_t> then_s = scheduler.could_start(request("true"));
  ASSERT_TRUE(then_s);
  EXPECT_GE(*then_s, end_s);
  EXPECT_LE(*then_s, end_s + 180) << "schedulers plan in steps";
  const std::string second = submit(request("sleep 300"));
  EXPECT_EQ(state(second), JobState::pending);
  EXPECT_EQ(scheduler.find_job(second)->head_node, "");
  scheduler.give_back(first);
  EXPECT_TRUE(reaches(first, JobState::cancelled));
  EXPECT_TRUE(reaches(second, JobState::running));
}

TEST_P(SchedulerInterface, AJobThatWaitsForANodeStartsOnAnother) {
  const std::string first = submit(request("sleep 300"));
  ASSERT_TRUE(reaches(first, JobState::running));
  const std::vector<std::string> before = scheduler.find_job(first)->nodes;
  const std::string second = submit(request("sleep 300"));
  EXPECT_EQ(state(second), JobState::pending);
  scheduler.forget_node_names(first);  // it runs
  scheduler.forget_node_names(second);
  EXPECT_TRUE(reaches(second, JobState::running));
  EXPECT_EQ(scheduler.find_job(first)->nodes, before);
  EXPECT_NE(scheduler.find_job(second)->nodes, before);
}

TEST_P(SchedulerInterface, OnAFreeNodeAJobCouldStartNow) {
  const std::string other = submit(request("sleep 300"));
  ASSERT_TRUE(reaches(other, JobState::running));
  JobRequest on_free = request("true");
  on_free.node_names = {nodes[1]};
  const std::optional<int64_t> then_s = scheduler.could_start(on_free);
  ASSERT_TRUE(then_s);
  EXPECT_LT(*then_s, scheduler.find_job(other)->start_s.value() + 120);
}

TEST_P(SchedulerInterface, WhatTheClusterHasNotCanNeverStart) {
  JobRequest impossible = request("true");
  impossible.node_names.clear();
  impossible.nodes = 1000;
  EXPECT_FALSE(scheduler.could_start(impossible));
}

TEST_P(SchedulerInterface, WhatIsRefusedIsAnError) {
  JobRequest wrong = request("true");
  wrong.partition = "no-such-partition";
  EXPECT_FALSE(scheduler.could_start(wrong));
  EXPECT_THROW(scheduler.submit(wrong), std::runtime_error);
}

TEST_P(SchedulerInterface, ARequeuedJobWaitsAndKnowsHowOften) {
  const std::string id = submit(request("sleep 300"));
  ASSERT_TRUE(reaches(id, JobState::running));
  scheduler.requeue(id);
  EXPECT_TRUE(bench->wait([&] { return scheduler.find_job(id)->restarts == 1; }));
}

TEST_P(SchedulerInterface, OneThatMustNotBeRequeuedIsNot) {
  JobRequest once = request("false");
  once.requeue = false;
  const std::string id = submit(once);
  ASSERT_TRUE(reaches(id, JobState::failed));
  scheduler.requeue(id);
  EXPECT_EQ(state(id), JobState::failed);
}

TEST_P(SchedulerInterface, AHelperJobHoldsItsNodeUntilItIsGivenBack) {
  const std::string id = submit(helper("sleep 300"));
  ASSERT_TRUE(reaches(id, JobState::running));
  EXPECT_THAT(scheduler.find_job(id)->nodes, testing::ElementsAre(nodes[1]));
  EXPECT_FALSE(is_free(nodes[1]));
  scheduler.give_back(id);
  EXPECT_TRUE(reaches(id, JobState::cancelled));
  EXPECT_TRUE(bench->wait([&] { return is_free(nodes[1]); }));
  const std::string ended = submit(helper("true"));
  EXPECT_TRUE(reaches(ended, JobState::completed)) << "with its script";
}

TEST_P(SchedulerInterface, AHelperJobGetsANodeThatIsNotExcluded) {
  HelperRequest request = helper("sleep 300");
  request.node.clear();
  request.excluded_nodes = {nodes[0]};
  const std::string id = submit(request);
  ASSERT_TRUE(reaches(id, JobState::running));
  EXPECT_NE(scheduler.find_job(id)->nodes.at(0), nodes[0]);
}

TEST_P(SchedulerInterface, AHelperJobWaitsForItsTurn) {
  JobRequest taken = request("sleep 300");
  taken.node_names = {nodes[1]};
  const std::string first = submit(taken);
  ASSERT_TRUE(reaches(first, JobState::running));
  const std::string id = submit(helper("sleep 300"));
  EXPECT_EQ(state(id), JobState::pending);
  scheduler.give_back(first);
  EXPECT_TRUE(reaches(id, JobState::running));
}

TEST_P(SchedulerInterface, AHelperJobEndsWithItsMainJob) {
  const std::string other = submit(request("true"));
  ASSERT_TRUE(reaches(other, JobState::completed));
  const int64_t now_s = scheduler.find_job(other)->start_s.value();
  HelperRequest until = helper("sleep 900");
  until.end_s = now_s + 600;
  const std::string id = submit(until);
  ASSERT_TRUE(reaches(id, JobState::running));
  EXPECT_LE(scheduler.find_job(id)->end_s.value(), *until.end_s);
  EXPECT_GT(scheduler.find_job(id)->end_s.value(), now_s + 300);
}

TEST_P(SchedulerInterface, AllHelpersOfAJobAreGivenBack) {
  HelperRequest waits = helper("sleep 300");
  const std::string first = submit(waits), second = submit(waits);
  ASSERT_TRUE(reaches(first, JobState::running));
  scheduler.give_back_helpers("471");  // of another job
  EXPECT_EQ(state(first), JobState::running);
  EXPECT_EQ(state(second), JobState::pending);
  scheduler.give_back_helpers("4711");
  EXPECT_TRUE(reaches(first, JobState::cancelled));
  EXPECT_TRUE(reaches(second, JobState::cancelled));
}

TEST_P(SchedulerInterface, AProgramHasAJobOfItsOwn) {
  EXPECT_EQ(end_of(scheduler.start_program(program({"true"}))), 0);
  EXPECT_NE(end_of(scheduler.start_program(program({"false"}))).value_or(0), 0);
  const StepId long_one = scheduler.start_program(program({"sleep", "300"}));
  EXPECT_TRUE(bench->wait([&] { return !is_free(nodes[0]); }));
  NodeProgram hurried = program({"true"});
  hurried.immediate_s = 1;
  EXPECT_NE(end_of(scheduler.start_program(hurried)).value_or(0), 0);
  scheduler.signal_step(long_one, SIGTERM);
  EXPECT_NE(end_of(long_one).value_or(0), 0);
  EXPECT_TRUE(bench->wait([&] { return is_free(nodes[0]); }));
}

class SchedulerInsideAJob : public SchedulerInterface {
 protected:
  void TearDown() override {}
};

TEST_P(SchedulerInsideAJob, AProcessKnowsItsJobAndItsNodes) {
  bench->enter();
  const std::optional<OwnJob> own = scheduler.own_job();
  ASSERT_TRUE(own);
  EXPECT_EQ(own->restarts, 0);
  const Allocation allocation = scheduler.own_allocation();
  EXPECT_EQ(allocation.job_id, own->id);
  ASSERT_EQ(allocation.nodes.size(), 1u);
  EXPECT_EQ(allocation.nodes[0].name, nodes[0]);
  EXPECT_EQ(allocation.nodes[0].het_group, -1);
  EXPECT_GT(allocation.nodes[0].cpus, 0);
  int gpus = 0;  // the job has the whole node
  const NodeInfo node = scheduler.find_node(nodes[0]).value();
  for (const auto& [type, count] : node.gpus) gpus += count;
  EXPECT_EQ(allocation.nodes[0].gpus, gpus);
  EXPECT_TRUE(allocation.end_s);
  EXPECT_EQ(scheduler.own_node(), nodes[0]);
  EXPECT_EQ(scheduler.find_job(own->id)->state, JobState::running);
}

TEST_P(SchedulerInsideAJob, StepsRunOnTheJobsNodes) {
  bench->enter();
  scheduler.forget_step_defaults();
  const AllocatedNode node = scheduler.own_allocation().nodes.at(0);
  EXPECT_EQ(end_of(scheduler.start_step({node, {"true"}})), 0);
  EXPECT_NE(end_of(scheduler.start_step({node, {"false"}})).value_or(0), 0);
  scheduler.forget_own_job();
  EXPECT_FALSE(scheduler.own_job());
}

}  // namespace sailor
