// Energy as objective and as limit: searches know it only as an expense, so what holds for cost holds for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/search.h"
#include "planner/spec/error.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using test::Instance;
using testing::HasSubstr;

PlanOptions options_of(CostModel model) {
  PlanOptions options;
  options.cost_model = model;
  options.space = model == CostModel::published ? SearchSpace::paper : SearchSpace::full;
  options.time_limit_s = 120;
  options.top_k = 20;
  options.explain = false;
  return options;
}

// Types draw as much for their speed as the seed says.
Instance energy_instance(uint64_t seed, CostModel model) {
  // The published model counts a process as 2.9 GB or so.
  Instance in = test::random_instance(seed, model == CostModel::published ? 2'900'000'000 : 300'000'000);
  double busy_watts = 150 + static_cast<double>(seed * 37 % 200);
  for (auto& [name, type] : in.catalog.gpu_types) {
    type.power = GpuPower{busy_watts / (2 + static_cast<double>(seed % 5)), busy_watts};
    busy_watts *= seed % 2 == 0 ? 0.3 : 2.5;
  }
  return in;
}

class EnergyTest : public testing::TestWithParam<CostModel> {
 protected:
  SearchResult ask(Instance& in, Objective objective) {
    in.job.objective = objective;
    return search(in.context(), options_of(GetParam()));
  }
};

TEST_P(EnergyTest, IsWhatGpusDrawWaitingAndComputing) {
  int plans = 0;
  for (uint64_t seed = 1; seed <= test::drawn(12u); ++seed) {
    Instance in = energy_instance(seed, GetParam());
    for (const Candidate& candidate : ask(in, Expense::energy).candidates) {
      const Prediction& p = candidate.prediction;
      double joules = 0;
      for (const StagePrediction& stage : p.stages) {
        const PlanPipeline& pipeline = candidate.plan.pipelines[static_cast<size_t>(stage.pipeline)];
        // Chunks of one group of GPUs share its busy time.
        if (stage.stage >= num_groups(candidate.plan, pipeline)) continue;
        const PlanStage& of = pipeline.stages[static_cast<size_t>(stage.stage)];
        const GpuPower& power = *in.catalog.at(of.gpu_type).power;
        joules += of.shape.tp * p.iteration_s *
                  (power.idle_watts + (power.busy_watts - power.idle_watts) * stage.busy_fraction);
      }
      EXPECT_NEAR(p.total(Expense::energy), joules, 1e-9 * joules) << seed;
      ++plans;
    }
  }
  EXPECT_GT(plans, test::drawn(9));
}

TEST_P(EnergyTest, NoOtherSearchFindsAThriftierPlanAndTheBoundHolds) {
  int found = 0;
  for (uint64_t seed = 1; seed <= test::drawn(10u); ++seed) {
    Instance in = energy_instance(seed, GetParam());
    const SearchResult best = ask(in, Expense::energy);
    std::vector<SearchResult> others;
    for (const Objective objective : {Objective::throughput, Objective(Expense::cost)})
      others.push_back(ask(in, objective));
    if (best.candidates.empty()) continue;
    ++found;
    const double joules = best.candidates[0].prediction.total(Expense::energy);
    for (const SearchResult& other : others)
      for (const Candidate& candidate : other.candidates)
        EXPECT_LE(joules, candidate.prediction.total(Expense::energy) * (1 + 1e-9)) << seed;
    ASSERT_TRUE(best.bound[Expense::energy].has_value());
    EXPECT_LE(*best.bound[Expense::energy], joules * (1 + 1e-9));
    if (GetParam() == CostModel::published) {
      EXPECT_GE(*best.bound[Expense::energy], joules * (1 - 1e-9)) << seed;
    }
  }
  EXPECT_GT(found, test::drawn(5));
}

TEST_P(EnergyTest, WithOneRateItIsCost) {
  for (uint64_t seed = 1; seed <= test::drawn(8u); ++seed) {
    Instance in = energy_instance(seed, GetParam());
    for (SnapshotNode& node : in.snapshot.nodes) node.shared = true;  // energy is of the GPUs in the plan
    for (auto& [name, type] : in.catalog.gpu_types)
      type.power = GpuPower{*type.usd_per_hour / 3600, *type.usd_per_hour / 3600};
    const SearchResult cost = ask(in, Expense::cost), energy = ask(in, Expense::energy);
    ASSERT_EQ(cost.candidates.empty(), energy.candidates.empty());
    if (cost.candidates.empty()) continue;
    EXPECT_DOUBLE_EQ(cost.candidates[0].prediction.usd_per_iteration(),
                     energy.candidates[0].prediction.total(Expense::energy))
        << seed;
    EXPECT_NEAR(*cost.bound[Expense::cost], *energy.bound[Expense::energy], 1e-12);
  }
}

TEST_P(EnergyTest, PlansMeetALimit) {
  int limited = 0;
  for (uint64_t seed = 1; seed <= test::drawn(8u); ++seed) {
    Instance in = energy_instance(seed, GetParam());
    const SearchResult least = ask(in, Expense::energy), fastest = ask(in, Objective::throughput);
    if (least.candidates.empty() || fastest.candidates.empty()) continue;
    const double low = least.candidates[0].prediction.total(Expense::energy),
                 high = fastest.candidates[0].prediction.total(Expense::energy);
    if (high < 1.05 * low) continue;
    in.job.constraints.most[Expense::energy] = (low + high) / 2;
    const SearchResult within = ask(in, Objective::throughput);
    ASSERT_FALSE(within.candidates.empty());
    const Prediction& p = within.candidates[0].prediction;
    EXPECT_LE(p.total(Expense::energy), (low + high) / 2);
    EXPECT_LE(p.iteration_s, least.candidates[0].prediction.iteration_s * (1 + 1e-9));
    EXPECT_GE(p.iteration_s, fastest.candidates[0].prediction.iteration_s * (1 - 1e-9));
    in.job.constraints.most[Expense::energy] = low * 0.9;
    EXPECT_EQ(ask(in, Objective::throughput).status, SearchStatus::infeasible);
    ++limited;
  }
  EXPECT_GT(limited, test::drawn(1));
}

TEST_P(EnergyTest, PlansMeetAFloorOfTheThroughput) {
  int limited = 0;
  for (uint64_t seed = 1; seed <= test::drawn(5u); ++seed) {
    Instance in = energy_instance(seed, GetParam());
    const SearchResult least = ask(in, Expense::energy), fastest = ask(in, Objective::throughput);
    if (least.candidates.empty() || fastest.candidates.empty()) continue;
    const double slow_s = least.candidates[0].prediction.iteration_s,
                 fast_s = fastest.candidates[0].prediction.iteration_s;
    if (slow_s < 1.05 * fast_s) continue;
    in.job.constraints.min_iterations_per_s = 2 / (slow_s + fast_s);
    const SearchResult within = ask(in, Expense::energy);
    ASSERT_FALSE(within.candidates.empty()) << seed;
    const Prediction& p = within.candidates[0].prediction;
    EXPECT_LE(p.iteration_s, (slow_s + fast_s) / 2 * (1 + 1e-9)) << seed;
    EXPECT_LE(p.total(Expense::energy), fastest.candidates[0].prediction.total(Expense::energy) * (1 + 1e-9))
        << seed;
    ++limited;
  }
  EXPECT_GT(limited, test::drawn(1));
}

TEST_P(EnergyTest, ATypeWithoutWattsIsNamed) {
  Instance in = energy_instance(1, GetParam());
  for (auto& [name, type] : in.catalog.gpu_types) type.power.reset();
  EXPECT_NO_THROW(ask(in, Objective::throughput));
  try {
    ask(in, Expense::energy);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no watts"));
  }
  in.job.constraints.most[Expense::energy] = 1e9;
  EXPECT_THROW(ask(in, Objective::throughput), InputError);
}

INSTANTIATE_TEST_SUITE_P(Both, EnergyTest, testing::Values(CostModel::published, CostModel::native),
                         [](const auto& of) { return std::string(to_string(of.param)); });

TEST(Energy, ThePublishedModelSearchesWithOneExpense) {
  Instance in = energy_instance(1, CostModel::published);
  in.job.objective = Expense::energy;
  in.job.constraints.most[Expense::cost] = 1;
  EXPECT_THROW(search(in.context(), options_of(CostModel::published)), InputError);
  EXPECT_NO_THROW(search(in.context(), options_of(CostModel::native)));
}

}  // namespace
}  // namespace sailor
