#include "planner/search/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/report/pareto_table.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using test::Instance;

PlanOptions exact_pareto() {
  PlanOptions options;
  options.space = SearchSpace::paper;
  options.cost_model = CostModel::published;
  options.time_limit_s = 120;
  return options;
}

ParetoFront front_of(const Instance& in, int points) {
  return pareto(in.context(), exact_pareto(), points, 10 * exact_pareto().time_limit_s);
}

// Fast GPUs are dear: throughput and cost pull apart.
Instance pareto_instance(uint64_t seed) {
  Instance in = test::random_instance(seed, 2'900'000'000);
  double usd = 8;
  for (auto& [name, type] : in.catalog.gpu_types) {
    type.usd_per_hour = usd;
    usd /= 4;
  }
  return in;
}

TEST(Undominated, KeepsWhatNothingBeatsInBothFromTheCheapestOn) {
  EXPECT_THAT(undominated({{3, 1}, {2, 2}, {2.5, 3}, {1, 4}, {1, 5}}), testing::ElementsAre(0, 1, 3));
  EXPECT_THAT(undominated({{1, 5}, {2, 5}, {1 + 1e-12, 5}}), testing::ElementsAre(0));
  EXPECT_THAT(undominated({}), testing::IsEmpty());
}

TEST(Pareto, NoPlanIsBothSlowerAndDearerAndBothEndsAreThere) {
  int with_a_choice = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    Instance in = pareto_instance(seed);
    const ParetoFront front = front_of(in, 6);
    const SearchResult fastest = search(in.context(), exact_pareto());
    ASSERT_EQ(front.status, fastest.status) << "seed " << seed;
    if (fastest.candidates.empty()) continue;
    in.job.objective = Expense::cost;
    const SearchResult cheapest = search(in.context(), exact_pareto());
    ASSERT_FALSE(front.points.empty()) << "seed " << seed;
    EXPECT_LE(front.points.size(), 6u);
    EXPECT_LE(front.points.back().candidate.prediction.iteration_s,
              fastest.candidates[0].prediction.iteration_s * (1 + 1e-9))
        << "seed " << seed;
    EXPECT_LE(front.points.front().candidate.prediction.usd_per_iteration(),
              cheapest.candidates[0].prediction.usd_per_iteration() * (1 + 1e-9))
        << "seed " << seed;
    for (size_t i = 0; i < front.points.size(); ++i) {
      const ParetoPoint& point = front.points[i];
      EXPECT_EQ(check_plan(point.candidate.plan, in.snapshot), std::vector<std::string>{}) << "seed " << seed;
      ASSERT_TRUE(point.bound_iteration_s.has_value()) << "seed " << seed;
      EXPECT_LE(*point.bound_iteration_s, point.candidate.prediction.iteration_s * (1 + 1e-12))
          << "seed " << seed;
      if (i == 0) continue;
      const Prediction& cheaper = front.points[i - 1].candidate.prediction;
      EXPECT_GT(point.candidate.prediction.usd_per_iteration(), cheaper.usd_per_iteration())
          << "seed " << seed;
      EXPECT_LT(point.candidate.prediction.iteration_s, cheaper.iteration_s) << "seed " << seed;
    }
    with_a_choice += front.points.size() > 2;
  }
  EXPECT_GE(with_a_choice, 8);
}

// Every point is the best that its own cost buys: a budget of exactly that finds nothing faster.
TEST(Pareto, NoPlanAsCheapIsFaster) {
  for (uint64_t seed = 40; seed < 52; ++seed) {
    Instance in = pareto_instance(seed);
    const ParetoFront front = front_of(in, 5);
    for (const ParetoPoint& point : front.points) {
      const Prediction& prediction = point.candidate.prediction;
      in.job.objective = Objective::throughput;
      in.job.constraints.most[Expense::cost] = prediction.usd_per_iteration() * (1 + 1e-9);
      const SearchResult best = search(in.context(), exact_pareto());
      ASSERT_EQ(best.status, SearchStatus::found) << "seed " << seed;
      // Intermediate points may be beaten where the front was not searched; the ends may not.
      const bool is_end = &point == &front.points.front() || &point == &front.points.back();
      const double ratio = best.candidates[0].prediction.iteration_s / prediction.iteration_s;
      if (is_end) {
        EXPECT_NEAR(ratio, 1, 1e-9) << "seed " << seed;
      }
      EXPECT_GE(best.candidates[0].prediction.iteration_s, *point.bound_iteration_s * (1 - 1e-9))
          << "seed " << seed;
    }
  }
}

TEST(Pareto, MorePointsShowNoWorseFront) {
  for (uint64_t seed = 60; seed < 70; ++seed) {
    const Instance in = pareto_instance(seed);
    const ParetoFront few = front_of(in, 3), many = front_of(in, 12);
    ASSERT_EQ(few.status, many.status);
    for (const ParetoPoint& point : few.points) {
      const Prediction& a = point.candidate.prediction;
      const bool as_good = std::any_of(many.points.begin(), many.points.end(), [&](const ParetoPoint& other) {
        const Prediction& b = other.candidate.prediction;
        return b.iteration_s <= a.iteration_s * (1 + 1e-9) &&
               b.usd_per_iteration() <= a.usd_per_iteration() * (1 + 1e-9);
      });
      EXPECT_TRUE(as_good) << "seed " << seed << ": " << summary(point.candidate.plan);
    }
  }
}

TEST(Pareto, TheSameInputGivesTheSameBytes) {
  const Instance in = pareto_instance(3);
  const std::string first = pareto_json(in.context(), front_of(in, 8));
  EXPECT_EQ(first, pareto_json(in.context(), front_of(in, 8)));
}

TEST(Pareto, TheLimitsOfTheJobHoldForEveryPoint) {
  Instance in = test::empty_instance(4, 16);
  in.add_type("fast", 0.01, 4'000'000'000, 8);
  in.add_type("slow", 0.03, 4'000'000'000, 1);
  in.add_node("f0", "fast", 4);
  in.add_node("s0", "slow", 4);
  const ParetoFront all = front_of(in, 10);
  ASSERT_GE(all.points.size(), 4u);
  const double dearest = all.points.back().candidate.prediction.usd_per_iteration();
  const double slowest = all.points.front().candidate.prediction.iteration_s;
  in.job.constraints.most[Expense::cost] = 0.9 * dearest;
  in.job.constraints.min_iterations_per_s = 1.1 / slowest;
  const ParetoFront some = front_of(in, 10);
  ASSERT_EQ(some.status, SearchStatus::found);
  for (const ParetoPoint& point : some.points) {
    EXPECT_LE(point.candidate.prediction.usd_per_iteration(), 0.9 * dearest);
    EXPECT_LE(point.candidate.prediction.iteration_s, slowest / 1.1);
  }
  in.job.constraints.most[Expense::cost] = 1e-12;
  const ParetoFront none = front_of(in, 10);
  EXPECT_EQ(none.status, SearchStatus::infeasible);
  EXPECT_TRUE(none.points.empty());
  EXPECT_NE(none.reason, "");
}

TEST(ParetoTable, HasARowPerPointAndTheJsonSaysTheSame) {
  Instance in = test::empty_instance(4, 16);
  in.add_type("fast", 0.01, 4'000'000'000, 8);
  in.add_type("slow", 0.03, 4'000'000'000, 1);
  in.add_node("f0", "fast", 4);
  in.add_node("s0", "slow", 4);
  const ParetoFront front = front_of(in, 4);
  ASSERT_EQ(front.status, SearchStatus::found);
  const std::string table = pareto_table(in.context(), front);
  EXPECT_EQ(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')), front.points.size() + 4)
      << table;
  const auto json = nlohmann::json::parse(pareto_json(in.context(), front));
  EXPECT_EQ(json.at("sailor_pareto"), 1);
  ASSERT_EQ(json.at("points").size(), front.points.size());
  const auto& last = json.at("points").back();
  const double tokens = 16 * 128;
  EXPECT_DOUBLE_EQ(last.at("tokens_per_s").get<double>(),
                   tokens * front.points.back().candidate.prediction.iterations_per_s());
  EXPECT_DOUBLE_EQ(last.at("usd_per_million_tokens").get<double>(),
                   front.points.back().candidate.prediction.usd_per_iteration() / tokens * 1e6);
  EXPECT_EQ(parse_plan(last.at("plan").dump(), "plan.json").pipelines.size(),
            front.points.back().candidate.plan.pipelines.size());
  const std::string svg = pareto_svg(in.context(), front);
  size_t circles = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++circles;
  EXPECT_EQ(circles, front.points.size());
}

}  // namespace
}  // namespace sailor
