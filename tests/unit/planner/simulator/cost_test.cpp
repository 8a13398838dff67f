#include "planner/simulator/cost.h"

#include <gtest/gtest.h>

#include "planner/search/search.h"
#include "planner/spec/error.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using test::Instance;

// Two nodes of eight GPUs at 2 USD, 0.5 USD on the spot market.
Instance priced_instance() {
  Instance in = test::empty_instance(2, 8);
  in.add_type("A", 0.02, int64_t{1} << 40, 2);
  in.catalog.gpu_types["A"].spot_usd_per_hour = 0.5;
  in.add_node("a", "A", 8);
  in.add_node("b", "A", 8);
  return in;
}

// A pipeline per node.
Plan plan_on(const Instance& in, const std::vector<std::string>& nodes, int tp = 1) {
  Plan plan =
      test::make_plan(in, 1, std::vector<std::vector<test::StageSpec>>(nodes.size(), {{0, 4, "A", tp}}));
  for (size_t j = 0; j < nodes.size(); ++j) plan.pipelines[j].stages[0].node = nodes[j];
  return plan;
}

double usd_per_hour(const Instance& in, const Plan& plan) {
  const Prediction p = simulate(in.context(), plan);
  EXPECT_NEAR(p.spent[Expense::cost].gpus, p.iteration_s * bill_of(in.context(), plan).usd_per_s, 1e-15);
  return p.spent[Expense::cost].gpus / p.iteration_s * 3600;
}

TEST(Cost, OfAPlanIsThatOfTheNodesThatItTakes) {
  const Instance in = priced_instance();
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a"})), 16, 1e-9);
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a", "a"}, 2)), 16, 1e-9);
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a", "b"})), 32, 1e-9);
  const PlanBill bill = bill_of(in.context(), plan_on(in, {"a", "b"}, 2));
  EXPECT_EQ(bill.used_gpus, 4);
  EXPECT_EQ(bill.paid_gpus, 16);
  EXPECT_EQ(bill.whole_nodes, 2);
}

TEST(Cost, OfASharedNodeIsThatOfItsGpusInThePlan) {
  Instance in = priced_instance();
  in.snapshot.nodes[1].shared = true;
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"b", "b"}, 2)), 8, 1e-9);
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a", "b"})), 16 + 2, 1e-9);
}

TEST(Cost, WithoutANodeIsThatOfTheGpus) {
  const Instance in = priced_instance();
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"elsewhere", ""}, 2)), 8, 1e-9);
}

TEST(Cost, ThePublishedModelPaysGpus) {
  const Instance in = priced_instance();
  const Prediction p = simulate(in.context(), plan_on(in, {"a"}), CostModel::published);
  EXPECT_NEAR(p.spent[Expense::cost].gpus / p.iteration_s * 3600, 2, 1e-9);
}

TEST(Cost, SpotPricesAreOfNodesThatHaveThem) {
  Instance in = priced_instance();
  in.snapshot.nodes[0].spot = true;
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a", "b"})), 4 + 16, 1e-9);
  const PlanBill bill = bill_of(in.context(), plan_on(in, {"a", "b"}));
  EXPECT_TRUE(bill.spot && bill.on_demand);
  in.snapshot.spot_usd_per_hour = {{"A", {{"z1", 0.25}}}};
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a"})), 2, 1e-9);
}

TEST(Cost, BillingUnitsHaveAPriceOfTheirOwn) {
  Instance in = priced_instance();
  in.snapshot.usd_per_unit_hour = 0.1;
  in.snapshot.nodes[0].billing_units = 96;
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a"})), 9.6, 1e-9);
  in.snapshot.nodes[0].shared = true;
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"a"}, 2)), 9.6 / 4, 1e-9);
  EXPECT_NEAR(usd_per_hour(in, plan_on(in, {"b"})), 16, 1e-9);  // without units
}

// One GPU of eight costs as much as all of them.
TEST(Cost, TheCheapestPlanUsesTheNodesThatItPays) {
  Instance in = priced_instance();
  in.job.objective = Expense::cost;
  PlanOptions options;
  const SearchResult result = search(in.context(), options);
  ASSERT_FALSE(result.candidates.empty());
  const PlanBill bill = bill_of(in.context(), result.candidates[0].plan);
  EXPECT_EQ(bill.whole_nodes, 1);
  EXPECT_GT(bill.used_gpus, 4);
  ASSERT_TRUE(result.bound[Expense::cost]);
  EXPECT_LE(*result.bound[Expense::cost], result.candidates[0].prediction.usd_per_iteration());
}

TEST(Cost, TheCheaperOfLikeNodesIsTaken) {
  Instance in = priced_instance();
  in.snapshot.nodes[1].spot = true;
  in.job.objective = Expense::cost;
  const SearchResult result = search(in.context(), PlanOptions{});
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_TRUE(bill_of(in.context(), result.candidates[0].plan).spot);
  EXPECT_FALSE(bill_of(in.context(), result.candidates[0].plan).on_demand);
}

TEST(Cost, AnUnknownPriceIsAnErrorWhereCostDecides) {
  Instance in = priced_instance();
  in.job.objective = Expense::cost;
  const auto message = [&] {
    try {
      search(in.context(), PlanOptions{});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(), "");
  in.catalog.gpu_types["A"].spot_usd_per_hour.reset();
  EXPECT_EQ(message(), "");
  in.snapshot.nodes[0].spot = true;
  EXPECT_NE(message().find("gpu_types.A has no spot_usd_per_hour"), std::string::npos) << message();
  in.catalog.gpu_types["A"].usd_per_hour.reset();
  EXPECT_NE(message().find("gpu_types.A has no usd_per_hour"), std::string::npos) << message();
}

}  // namespace
}  // namespace sailor
