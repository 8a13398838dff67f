// A longer search while training goes on: when there is one, and what becomes of it.
#include "trainer/elastic/second_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "planner/plan/plan_json.h"
#include "planner/spec/job_spec.h"

namespace sailor {
namespace {

using std::chrono_literals::operator""ms;

struct SecondLookTest : testing::Test {
  const std::string fixtures = std::string(SAILOR_SOURCE_DIR) + "/tests/golden/fixtures";
  const JobSpec job = load_job_spec(fixtures + "/sailor-42/job.yaml");
  const Plan first = load_plan(fixtures + "/sailor-42/plan.json");
  const Replanner replanner{job, first, [&] {
                              Replanner::Options options;
                              options.site_config = fixtures + "/sailor.yaml";
                              options.time.limit_s = 60;
                              return options;
                            }()};
  SecondLook look{20};

  // Of the GPUs of one node of each type; the plan in force is one that nobody would choose.
  SecondLook::Training training() const {
    SecondLook::Training t{{{"q1", 0}, {"q1", 1}, {"s2", 0}, {"s2", 1}}, first, {}};
    t.plan = *replanner.plan_for({t.gpus[2]}, first).plan;
    return t;
  }
  // Until the search that is under way has ended.
  std::optional<Replanned> wait(const SecondLook::Training& t) {
    for (int i = 0; i < 2000 && look.wanted(); ++i, std::this_thread::sleep_for(10ms))
      if (std::optional<Replanned> found = look.tick(t, replanner)) return found;
    return std::nullopt;
  }
};

TEST_F(SecondLookTest, ASearchThatCameToItsEndIsEnough) {
  look.planned(true);
  EXPECT_FALSE(look.wanted());
  EXPECT_FALSE(look.tick(training(), replanner));
  EXPECT_FALSE(look.wanted());
}

TEST_F(SecondLookTest, WhatWasMissedIsFoundOnceForTheSameGpus) {
  const SecondLook::Training t = training();
  look.planned(false);
  EXPECT_TRUE(look.wanted());
  const std::optional<Replanned> found = wait(t);
  ASSERT_TRUE(found);
  EXPECT_TRUE(replanner.better(*found->plan, t.plan));
  EXPECT_EQ(found->text, "longer search");
  EXPECT_FALSE(look.wanted());
  look.planned(false);
  EXPECT_FALSE(wait(t)) << "the same GPUs again";
  SecondLook::Training fewer = t;
  fewer.gpus.pop_back();
  look.planned(false);
  EXPECT_TRUE(wait(fewer));
}

TEST_F(SecondLookTest, WhatIsFoundForGpusThatHaveChangedSinceCountsForNothing) {
  const SecondLook::Training t = training();
  look.planned(false);
  EXPECT_FALSE(look.tick(t, replanner));  // begins
  look.cancel();
  EXPECT_TRUE(look.wanted()) << "another one is due";
  EXPECT_TRUE(wait(t));
}

TEST_F(SecondLookTest, ASearchThatIsToldToEndIsNotComplete) {
  const std::atomic<bool> stop = true;
  const SecondLook::Training t = training();
  EXPECT_TRUE(replanner.plan_for(t.gpus, t.plan).complete);
  EXPECT_FALSE(replanner.plan_for(t.gpus, t.plan, {}, Replanner::Time{1e6, &stop}).complete);
}

}  // namespace
}  // namespace sailor
