// Start now or wait: times of plans are made up, the scheduler is a simulated one.
#include "planner/start/choose_start.h"

#include <gmock/gmock.h>

#include <cmath>

#include "planner/scheduler/simulated_cluster.h"

namespace sailor {
namespace {

using testing::ElementsAre;

constexpr int64_t kSteps = 1000;

SnapshotNode node(const std::string& name, const std::string& type = "X") {
  SnapshotNode result;
  result.name = name;
  result.gpu_type = type;
  result.gpus = 4;
  result.free_gpus = {0, 1, 2, 3};
  return result;
}

class ChooseStartTest : public testing::Test {
 protected:
  // A plan on every node: 12 s on one X, half of it on a Y, and nearly in proportion to their number.
  SearchResult plan(const Snapshot& nodes) {
    ++searches;
    SearchResult result;
    if (nodes.nodes.empty()) return result;
    result.status = SearchStatus::found;
    Candidate candidate;
    double speed = 0, price = 0;
    for (const SnapshotNode& each : nodes.nodes) {
      PlanStage stage;
      stage.node = each.name;
      stage.gpu_type = each.gpu_type;
      stage.shape.tp = 4;
      candidate.plan.pipelines.push_back({1, {stage}});
      speed += each.gpu_type == "Y" ? 2 : 1;
      price += each.gpu_type == "Y" ? 4 : 1;
    }
    candidate.prediction.iteration_s = 12 / std::pow(speed, exponent);
    candidate.prediction.spent[Expense::cost].gpus = price * candidate.prediction.iteration_s;
    result.candidates = {candidate};
    return result;
  }

  StartChoice choose() {
    question.steps = kSteps;
    return choose_start(
        snapshot, plan(snapshot), question, [this](const Snapshot& nodes, double) { return plan(nodes); },
        [this](const StartOption& option) {
          ++questions;
          return ask(option);
        });
  }
  std::vector<std::string> chosen() {
    const StartChoice choice = choose();
    return choice.options.empty() ? std::vector<std::string>{} : node_names(choice.options[0].candidate.plan);
  }
  void busy(const std::string& name, std::optional<double> free_in_s, const std::string& type = "X") {
    snapshot.busy.push_back({node(name, type), "in use", free_in_s});
  }

  Snapshot snapshot;
  StartQuestion question;
  double exponent = 1;
  int searches = 0, questions = 0;
  AskScheduler ask = [](const StartOption& option) { return std::optional<double>(option.start.wait_s); };
};

TEST_F(ChooseStartTest, WaitsWhenThatEndsEarlier) {
  snapshot.nodes = {node("a1")};
  busy("a2", 1000);
  const StartChoice choice = choose();  // 12,000 s now, 1000 + 6000 s on both
  EXPECT_THAT(node_names(choice.options[0].candidate.plan), ElementsAre("a1", "a2"));
  EXPECT_EQ(choice.options[0].start.source, StartSource::scheduler);
  EXPECT_DOUBLE_EQ(choice.options[0].end_s(), 7000);
  EXPECT_EQ(choice.options[1].start.source, StartSource::free_now);
  EXPECT_EQ(questions, 1);
}

TEST_F(ChooseStartTest, StartsNowWhenTheWaitIsLongerThanWhatItSaves) {
  snapshot.nodes = {node("a1")};
  busy("a2", 5900);  // saves 100 s: predictions are no better
  EXPECT_THAT(chosen(), ElementsAre("a1"));
  snapshot.busy[0].free_in_s = 5000;
  EXPECT_THAT(chosen(), ElementsAre("a1", "a2"));
}

TEST_F(ChooseStartTest, AStartThatNobodyConfirmsCountsATenthLater) {
  snapshot.nodes = {node("a1")};
  busy("a2", 5500);  // ends at 11,500 or, if late, 12,050
  EXPECT_THAT(chosen(), ElementsAre("a1", "a2"));
  ask = [](const StartOption&) { return std::nullopt; };
  EXPECT_THAT(chosen(), ElementsAre("a1"));
}

TEST_F(ChooseStartTest, TheSchedulersAnswerCountsNotTheEstimate) {
  snapshot.nodes = {node("a1")};
  busy("a2", 1000);
  ask = [](const StartOption&) { return std::optional<double>(8000); };  // others come first
  EXPECT_THAT(chosen(), ElementsAre("a1"));
}

TEST_F(ChooseStartTest, WithNothingFreeItTakesTheEarliestEnd) {
  busy("a1", 100);
  busy("a2", 200);
  busy("y1", 4000, "Y");
  EXPECT_THAT(chosen(), ElementsAre("a1", "a2"));
  question.most_wait_s = 150;
  EXPECT_THAT(chosen(), ElementsAre("a1"));
  question.most_wait_s = 50;
  EXPECT_THAT(chosen(), ElementsAre());
}

TEST_F(ChooseStartTest, AShorterTimeLimitFitsIntoAGap) {
  // a1 is idle, and promised to a long job from 16,000 s on.
  snapshot.busy.push_back({node("a1"), "planned for another job", std::nullopt, 0.0});
  snapshot.queue = {{.nodes = 1, .names = {"a1"}, .start_in_s = 16000, .limit_s = 50000}};
  question.length_s = 80000;
  EXPECT_DOUBLE_EQ(choose().options[0].start.wait_s, 66000);
  question.shortens = true;
  const StartOption option = choose().options[0];  // runs for 12,000 s
  EXPECT_DOUBLE_EQ(option.start.wait_s, 1) << "at once, on nodes that are planned for others later";
  EXPECT_DOUBLE_EQ(option.least_s, 15000);
  snapshot.queue[0].start_in_s = 14900;
  EXPECT_DOUBLE_EQ(choose().options[0].start.wait_s, 64900) << "with room for slower steps";
  question.length_s = 12500;
  EXPECT_DOUBLE_EQ(choose().options[0].least_s, 0) << "the user's limit is shorter";
}

TEST_F(ChooseStartTest, AStartThatNeedsTwoJobsHidesNoneThatNeedsOne) {
  snapshot.nodes = {node("a1")};  // 12,000 s
  busy("y1", 13000, "Y");         // 6000 s
  busy("y2", 13000, "Y");
  question.length_s = 7000;
  EXPECT_THAT(chosen(), ElementsAre("a1", "y1", "y2"));  // ends at 15,400 s
}

TEST_F(ChooseStartTest, OfEqualEndsTheOneWithFewerGpuHours) {
  exponent = 0.02;  // a second node saves 1.4 %
  busy("a1", 100);
  busy("a2", 100);
  EXPECT_THAT(chosen(), testing::SizeIs(1));
}

TEST_F(ChooseStartTest, ADeadlineIsMetByTheCheapest) {
  exponent = 0.9;  // more nodes cost more
  snapshot.nodes = {node("a1"), node("a2")};
  busy("y1", 600, "Y");
  question.deadline_s = 13000;
  EXPECT_THAT(chosen(), testing::SizeIs(1));  // 12,000 s
  question.deadline_s = 7000;
  EXPECT_THAT(chosen(), ElementsAre("a1", "a2"));  // 6430 s, at half the price of y1
  question.deadline_s = 3500;
  const StartChoice late = choose();
  EXPECT_FALSE(late.in_time);
  EXPECT_GT(late.options[0].end_s(), 3500);
  snapshot.nodes.clear();
  question.deadline_s = 60;
  EXPECT_THAT(choose().options, testing::Not(testing::IsEmpty()));  // what is possible instead
}

TEST_F(ChooseStartTest, ForAnExpenseNothingIsPaidForTime) {
  exponent = 0.9;
  snapshot.nodes = {node("a1")};
  busy("y1", 60, "Y");  // twice as fast at twice the cost
  question.objective = Expense::cost;
  EXPECT_THAT(chosen(), ElementsAre("a1"));
  question.objective = Objective::throughput;
  EXPECT_THAT(chosen(), testing::Contains("y1"));
}

TEST_F(ChooseStartTest, PlansThatReachTheTimeLimitAreALastResort) {
  snapshot.nodes = {node("a1")};
  busy("a2", 11000);
  question.length_s = 8000;  // a1 alone takes 12,000 s
  EXPECT_THAT(chosen(), ElementsAre("a1", "a2"));
  question.most_wait_s = 10000;
  EXPECT_THAT(chosen(), ElementsAre("a1"));
}

TEST_F(ChooseStartTest, AJobThatGrowsWaitsOnlyBehindOthers) {
  snapshot.nodes = {node("a1")};
  busy("a2", 1000);
  question.grows = true;
  EXPECT_THAT(chosen(), ElementsAre("a1"));
  EXPECT_EQ(searches, 1);  // it gets a2 while it runs
  snapshot.queue = {{.nodes = 1, .names = {"a2"}, .start_in_s = 1000, .limit_s = 600}};
  EXPECT_THAT(chosen(), ElementsAre("a1", "a2"));
}

// y1 is in use for 1000 s, and then another job's for 600 s.
TEST_F(ChooseStartTest, AJobStartsNowAndQueuesForWhatItWouldWaitFor) {
  snapshot.nodes = {node("a1")};
  busy("y1", 1000, "Y");
  snapshot.queue = {{.nodes = 1, .names = {"y1"}, .start_in_s = 1000, .limit_s = 600}};
  question.grows = true;
  EXPECT_THAT(chosen(), ElementsAre("a1", "y1"));  // 1600 + 4000 s
  question.queues = true;
  const StartChoice choice = choose();
  const StartOption& option = choice.options[0];
  EXPECT_THAT(node_names(option.candidate.plan), ElementsAre("a1"));
  EXPECT_EQ(option.start.source, StartSource::free_now);
  EXPECT_THAT(option.queued, ElementsAre(QueuedNodes{"", "", "Y", 4, 1})) << "a1 is its own";
  EXPECT_NEAR(option.end_s(), 1600 + (1 - 1600.0 / 12000) * 4000, 1e-6);
  EXPECT_EQ(option.least_s, 0);
  EXPECT_THAT(node_names(choice.options[1].candidate.plan), ElementsAre("a1", "y1"));
  EXPECT_TRUE(choice.options[1].queued.empty());

  question.length_s = 8000;  // a1 alone takes 12,000 s
  EXPECT_THAT(chosen(), ElementsAre("a1", "y1"));
  question.shortens = true;  // another job would continue
  EXPECT_THAT(choose().options[0].queued, testing::SizeIs(1));
}

TEST_F(ChooseStartTest, AJobQueuesWhileItRunsOnlyIfThatSavesTime) {
  snapshot.nodes = {node("a1")};
  busy("y1", 100, "Y");
  snapshot.queue = {{.nodes = 1, .names = {"y1"}, .start_in_s = 100, .limit_s = 60}};
  question.queues = true;
  EXPECT_THAT(choose().options[0].queued, testing::IsEmpty())
      << "until then half a minute of it would be done";
  snapshot.busy[0].free_in_s = 1000;
  EXPECT_THAT(choose().options[0].queued, testing::SizeIs(1));
  for (int i = 0; i < 60; ++i) busy("z" + std::to_string(i), 1000, "Y");
  EXPECT_THAT(choose().options[0].queued, testing::IsEmpty()) << "a1 is slower than 2 % of all";
  snapshot.busy.resize(1);
  question.deadline_s = 20000;
  EXPECT_THAT(choose().options[0].queued, testing::IsEmpty())
      << "the cheapest that ends in time is asked for";
  question.deadline_s.reset();
  question.objective = Expense::cost;
  EXPECT_THAT(choose().options[0].queued, testing::IsEmpty());
  question.objective = Objective::throughput;
  snapshot.nodes.clear();
  EXPECT_THAT(choose().options[0].queued, testing::IsEmpty()) << "nothing can start";
}

TEST_F(ChooseStartTest, AsksLittleAndSearchesLittleOnALargeCluster) {
  for (int i = 0; i < 200; ++i) busy("a" + std::to_string(i), 100 + 50 * i);
  for (int i = 0; i < 100; ++i) busy("y" + std::to_string(i), 100 + 90 * i, "Y");
  ask = [](const StartOption& option) { return std::optional<double>(3 * option.start.wait_s); };
  choose();
  EXPECT_LE(questions, 3);
  EXPECT_LE(searches, 24);
}

// On a simulated cluster: the stated start is the one that the scheduler then gives.
TEST_F(ChooseStartTest, TheStatedStartIsTheRealOne) {
  SimulatedSite site;
  site.partitions.push_back({"all", {}});
  for (const std::string name : {"a1", "a2", "a3"}) {
    site.nodes.push_back({.name = name, .gpu_type = "X", .gpus = 4});
    site.partitions[0].nodes.push_back(name);
  }
  SimulatedCluster cluster(site);
  const int64_t now_s = cluster.now_s();
  cluster.submit({.nodes = 1, .node_names = {"a1"}, .time_limit_s = 600});
  cluster.submit({.nodes = 1, .node_names = {"a2"}, .time_limit_s = 900});
  cluster.submit({.nodes = 1, .node_names = {"a3"}, .time_limit_s = 90000});
  cluster.submit({.nodes = 1, .node_names = {"a1"}, .time_limit_s = 1200});  // waits for a1
  busy("a1", 600);
  busy("a2", 900);
  busy("a3", 90000);
  snapshot.queue = {{.nodes = 1, .names = {"a1"}, .start_in_s = 600, .limit_s = 1200}};
  question.length_s = 20000;
  ask = [&](const StartOption& option) -> std::optional<double> {
    return static_cast<double>(
        *cluster.could_start({.node_names = node_names(option.candidate.plan), .time_limit_s = 20000}) -
        now_s);
  };
  const StartOption option = choose().options.at(0);
  EXPECT_THAT(node_names(option.candidate.plan), ElementsAre("a1", "a2"));
  EXPECT_DOUBLE_EQ(option.start.wait_s, 1800);
  const std::string job =
      cluster.submit({.node_names = node_names(option.candidate.plan), .time_limit_s = 20000});
  cluster.advance_to(now_s + 3000);
  EXPECT_EQ(cluster.find_job(job)->start_s, now_s + 1800);
}

}  // namespace
}  // namespace sailor
