// The simulated scheduler does what every scheduler does, and is what tests need beyond that.
#include "planner/scheduler/simulated_scheduler.h"

#include <csignal>

#include "tests/unit/planner/scheduler/interface_tests.h"

namespace sailor {
namespace {

class SimulatedBench final : public SchedulerBench {
 public:
  Scheduler& scheduler() override { return scheduler_; }
  std::vector<std::string> nodes() override { return {"n1", "n2"}; }
  std::string partition() override { return "p"; }
  bool wait(const std::function<bool()>& done) override {
    const int64_t end_s = cluster_.now_s() + 60;
    while (!done()) {
      if (cluster_.now_s() >= end_s) return false;
      cluster_.advance_to(cluster_.now_s() + 1);
    }
    return true;
  }
  void enter() override {
    scheduler_.enter(cluster_.submit({.partition = "p", .node_names = {"n1"}, .time_limit_s = 600}));
  }

 private:
  SimulatedCluster cluster_{
      {.nodes = {{.name = "n0", .gpu_type = "A", .gpus = 4, .cpus = 8},
                 {.name = "n1", .gpu_type = "A", .gpus = 4, .cpus = 8},
                 {.name = "n2", .gpu_type = "A", .gpus = 4, .cpus = 8}},
       .partitions = {{.name = "other", .nodes = {"n0"}}, {.name = "p", .nodes = {"n1", "n2"}}}}};
  SimulatedScheduler scheduler_{cluster_};
};

std::unique_ptr<SchedulerBench> simulated() {
  return std::make_unique<SimulatedBench>();
}
INSTANTIATE_TEST_SUITE_P(Simulated, SchedulerInterface, testing::Values(&simulated));
INSTANTIATE_TEST_SUITE_P(Simulated, SchedulerInsideAJob, testing::Values(&simulated));

struct SimulatedSchedulerTest : testing::Test {
  SimulatedCluster cluster{
      {.nodes = {{.name = "n1"}, {.name = "n2"}}, .partitions = {{.name = "p", .nodes = {"n1", "n2"}}}}};
  SimulatedScheduler scheduler{cluster};
};

TEST_F(SimulatedSchedulerTest, AStepEndsAsTheTestSays) {
  scheduler.enter(cluster.submit({}), {{"SAILOR_JOB", "job.yaml"}});
  EXPECT_EQ(scheduler.carried_value("SAILOR_JOB"), "job.yaml");
  const StepId step = scheduler.start_step({{.name = "n1"}, {"agent"}, {{"A", "1"}}});
  EXPECT_EQ(scheduler.steps().at(step).environment.at("A"), "1");
  cluster.advance_to(cluster.now_s() + 1000);
  EXPECT_FALSE(scheduler.step_end(step));
  scheduler.end_step(step, 3 << 8);
  EXPECT_EQ(scheduler.step_end(step), 3 << 8);
  EXPECT_THROW(scheduler.start_step({{.name = "n2"}, {"agent"}}), std::runtime_error) << "is not the job's";
}

TEST_F(SimulatedSchedulerTest, StepsEndWithTheStartOfTheJobThatTheyAreIn) {
  const std::string job = cluster.submit({});
  scheduler.enter(job);
  const StepId step = scheduler.start_step({{.name = "n1"}, {"agent"}});
  cluster.requeue(job);  // and started again at once
  ASSERT_EQ(cluster.find_job(job)->state, JobState::running);
  EXPECT_EQ(scheduler.step_end(step), SIGTERM);
  EXPECT_EQ(scheduler.own_job()->restarts, 1);
}

TEST_F(SimulatedSchedulerTest, ProcessesOfOneClusterSeeEachOthersJobs) {
  SimulatedScheduler other{cluster};
  const std::string job = other.submit({.script = "sleep 10"});
  EXPECT_EQ(scheduler.find_job(job)->state, JobState::running);
  scheduler.give_back(job);
  EXPECT_EQ(other.find_job(job)->state, JobState::cancelled);
}

TEST_F(SimulatedSchedulerTest, TheNextPartWaitsForTheNodesOfItsJob) {
  const std::string job = cluster.submit({.nodes = 2, .time_limit_s = 600, .script = "train"});
  scheduler.enter(job);
  const std::string next = scheduler.submit_next_part("run");
  EXPECT_FALSE(scheduler.own_job());
  EXPECT_EQ(scheduler.find_job(next)->state, JobState::pending);
  scheduler.give_back(job);
  cluster.advance_to(cluster.now_s() + 1);
  EXPECT_EQ(scheduler.find_job(next)->state, JobState::running);
  EXPECT_THROW(scheduler.submit_next_part("run"), std::runtime_error) << "it is in no job";
}

}  // namespace
}  // namespace sailor
