// What holds of every feature of plans, on random problems: for tests of searches.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "planner/plan/validate.h"
#include "planner/search/search.h"
#include "tests/unit/planner/instance.h"

namespace sailor::test {

// With the feature no plan is worse than without; plans are valid, predicted as simulate() does, and not
// below the bound; and some of them use it. `prepare` changes each problem.
inline void expect_never_worse(
    uint64_t first_seed, uint64_t count, PlanFeature feature, const std::function<bool(const Plan&)>& uses,
    const std::function<void(Instance&)>& prepare = [](Instance&) {}) {
  int using_it = 0;
  for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    Instance in = random_instance(seed, 0);
    prepare(in);
    PlanOptions without;
    without.time_limit_s = 60;
    without.explain = false;
    const PlanOptions with = without;
    without.allow.erase(feature);
    const SearchResult plain = search(in.context(), without), all = search(in.context(), with);
    if (plain.status == SearchStatus::found) {
      ASSERT_EQ(all.status, SearchStatus::found) << seed;
      EXPECT_LE(all.candidates[0].prediction.iteration_s, plain.candidates[0].prediction.iteration_s) << seed;
    }
    for (const Candidate& candidate : all.candidates) {
      using_it += uses(candidate.plan);
      EXPECT_TRUE(check_plan(candidate.plan, in.job).empty()) << seed;
      EXPECT_EQ(candidate.prediction.iteration_s, simulate(in.context(), candidate.plan).iteration_s);
      EXPECT_TRUE(candidate.prediction.fits);
      EXPECT_LE(all.bound_iteration_s.value_or(0), candidate.prediction.iteration_s * (1 + 1e-9)) << seed;
    }
  }
  EXPECT_GT(using_it, 0);
}

}  // namespace sailor::test
