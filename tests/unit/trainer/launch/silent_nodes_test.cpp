// What a job does when a rank has failed: it ends, or waits for the scheduler when a node does not answer.
#include "trainer/launch/silent_nodes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "planner/scheduler/simulated_scheduler.h"

namespace sailor {
namespace {

// Steps on silent nodes do not end.
struct SchedulerOfSilentNodes : SimulatedScheduler {
  using SimulatedScheduler::SimulatedScheduler;
  std::set<std::string> silent;

  StepId start_step(const StepSpec& step) override {
    if (!silent.contains(step.node.name)) return SimulatedScheduler::start_step(step);
    return SimulatedScheduler::start_step({step.node, {"an endless program"}});
  }
  // Whatever runs on the node.
  void end_steps(const std::string& node, int wait_status) {
    for (const auto& [step, of] : steps())
      if (of.node == node) end_step(step, wait_status);
  }
};

// A job on n1 and n2. Time is the cluster's.
struct SilentNodes : testing::Test {
  SimulatedCluster cluster{
      {.nodes = {{.name = "n1"}, {.name = "n2"}}, .partitions = {{.name = "p", .nodes = {"n1", "n2"}}}}};
  SchedulerOfSilentNodes scheduler{cluster};
  const int64_t begin_s = cluster.now_s();
  const std::string id = cluster.submit({.nodes = 2});
  std::vector<std::string> said;

  SilentNodes() {
    cluster.advance_to(begin_s);
    scheduler.enter(id);
  }
  bool restarted() const { return cluster.find_job(id)->restarts > 0; }
  // Returns for how long it waits.
  double waited_s() {
    double now_s = 0;
    wait_for_silent_nodes(scheduler, scheduler.own_allocation().nodes,
                          {[&] { return restarted(); },
                           [&](const std::string& text) { said.push_back(text); },
                           {.now_s = [&] { return now_s; },
                            .sleep =
                                [&](double s) {
                                  now_s += s;
                                  cluster.advance_to(begin_s + std::llround(now_s));
                                }}});
    return now_s;
  }
};

TEST_F(SilentNodes, WhereAllAnswerItReturnsAtOnce) {
  EXPECT_LT(waited_s(), 1);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(scheduler.steps().size(), 2u) << "one on each node";
}

TEST_F(SilentNodes, ItIsThereWhenTheSchedulerNotices) {
  scheduler.silent = {"n2"};
  cluster.at(begin_s + 300, [this] { cluster.fail_node("n2"); });
  EXPECT_NEAR(waited_s(), 300, 2);
  EXPECT_TRUE(restarted());
  EXPECT_EQ(said,
            std::vector<std::string>{"n2 does not answer: waiting until the scheduler requeues the job"});
}

TEST_F(SilentNodes, ANodeThatIsOnlySlowEndsTheWait) {
  scheduler.silent = {"n1", "n2"};
  cluster.at(begin_s + 40, [this] { scheduler.end_steps("n1", 0); });
  cluster.at(begin_s + 60, [this] { scheduler.end_steps("n2", 0); });
  EXPECT_NEAR(waited_s(), 60, 2);
  EXPECT_EQ(said,
            std::vector<std::string>{"n1, n2 do not answer: waiting until the scheduler requeues the job"});
}

TEST_F(SilentNodes, AStepThatFailsIsTriedAgain) {
  scheduler.silent = {"n2"};
  cluster.at(begin_s + 5, [this] {
    scheduler.end_steps("n2", 256);
    scheduler.silent = {};
  });
  EXPECT_NEAR(waited_s(), 15, 2);
  EXPECT_EQ(scheduler.steps().size(), 3u);
}

TEST_F(SilentNodes, TheWaitHasAnEnd) {
  scheduler.silent = {"n2"};
  EXPECT_NEAR(waited_s(), 600, 2) << "the scheduler has nothing against the node";
}

TEST_F(SilentNodes, ItWaitsLongerForANodeThatDoesNotRespond) {
  scheduler.silent = {"n2"};
  cluster.at(begin_s + 100, [this] { cluster.lose_contact("n2"); });
  EXPECT_NEAR(waited_s(), 3600, 2);
}

}  // namespace
}  // namespace sailor
