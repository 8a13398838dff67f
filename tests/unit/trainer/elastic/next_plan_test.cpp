// Which plan a job goes on with, after a search that was cut short too.
#include "trainer/elastic/next_plan.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

using std::chrono_literals::operator""ms;

struct NextPlanTest : testing::Test {
  const std::string fixtures = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures";
  const JobSpec job = load_job_spec(fixtures + "/sailor-42/job.yaml");
  const Plan first = load_plan(fixtures + "/sailor-42/plan.json");
  NextPlan next = with_time_limit(20);
  const std::vector<LiveGpu> gpus{{"q1", 0}, {"q1", 1}, {"s2", 0}, {"s2", 1}};
  // For one GPU, though there are four.
  const Plan poor = *next.make(first, {{"s2", 0}}).plan;

  NextPlan with_time_limit(double limit_s) const {
    Replanner::Options options;
    options.site_config = fixtures + "/sailor.yaml";
    options.time.limit_s = limit_s;
    return {job, first, options};
  }
  std::optional<NextPlan::LongerSearch> longer_search(NextPlan& next, const std::vector<LiveGpu>& gpus,
                                                      double change_s = 0.1) const {
    for (int i = 0; i < 2000 && next.wants_longer_search(); ++i, std::this_thread::sleep_for(10ms))
      if (auto found = next.search_longer(poor, gpus, change_s, 1000)) return found;
    return std::nullopt;
  }
  void take_a_plan_of_a_short_search() {
    Replanned made = next.make(first, gpus);
    made.complete = false;
    next.take(made, first);
  }
};

TEST_F(NextPlanTest, MoreGpusPayWhenThePlanUsesFew) {
  EXPECT_TRUE(next.pays_with(poor, gpus));
  EXPECT_FALSE(next.pays_with(poor, {{"s2", 0}}));
}

TEST_F(NextPlanTest, WhatPaysIsTheNextPlanOnce) {
  ASSERT_TRUE(next.pays_with(poor, {{"q1", 0}, {"s2", 0}}));
  const Plan found = *next.make(poor, gpus).plan, best = *next.make(poor, gpus).plan;
  EXPECT_EQ(num_ranks(found), 2);
  EXPECT_EQ(num_ranks(best), 4);
}

TEST_F(NextPlanTest, WhereASearchIsCutShortALongerOneDecides) {
  const std::vector<LiveGpu> two = {{"q1", 0}, {"s2", 0}};  // without a whole pipeline of the first plan
  NextPlan hurried = with_time_limit(1e-9);
  EXPECT_FALSE(hurried.pays_with(poor, two));
  const auto found = longer_search(hurried, two);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->pays);
  EXPECT_FALSE(longer_search(hurried, two));
}

TEST_F(NextPlanTest, WhatALongerSearchFoundIsTheNextPlanOnce) {
  take_a_plan_of_a_short_search();
  const auto found = longer_search(next, gpus);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->pays);
  EXPECT_LT(found->then_s, found->now_s);
  EXPECT_EQ(next.make(poor, gpus).text, "longer search");
  EXPECT_EQ(next.make(poor, gpus).text, "new search");
}

TEST_F(NextPlanTest, ItIsNotWhenAGpuThatItNeedsIsGone) {
  take_a_plan_of_a_short_search();
  ASSERT_TRUE(longer_search(next, gpus));
  EXPECT_EQ(next.make(poor, {{"s2", 0}}).text, "new search");
}

TEST_F(NextPlanTest, AChangeThatTakesLongerThanTheTrainingDoesNotPay) {
  take_a_plan_of_a_short_search();
  const auto found = longer_search(next, gpus, 1e9);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->pays);
  EXPECT_EQ(next.make(poor, gpus).text, "new search");
}

TEST_F(NextPlanTest, PlansPromiseWhatTheSimulatorSays) {
  Plan plan = poor;
  plan.prediction.reset();
  ASSERT_TRUE(next.promised_s(poor));
  EXPECT_NEAR(*next.promised_s(plan), *next.promised_s(poor), 1e-9);
}

}  // namespace
}  // namespace sailor
