#include "planner/spec/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using testing::ElementsAre;

TEST(Objective, NamesAreThroughputAndTheExpenses) {
  EXPECT_THAT(objective_names(), ElementsAre("throughput", "cost", "energy"));
  for (size_t i = 0; i < objective_names().size(); ++i) {
    EXPECT_EQ(to_string(objective_at(i)), objective_names()[i]);
    EXPECT_EQ(parse_objective(objective_names()[i]), objective_at(i));
  }
  EXPECT_FALSE(Objective::throughput.expense().has_value());
  EXPECT_EQ(parse_objective("energy").expense(), Expense::energy);
  EXPECT_THROW(parse_objective("power"), InputError);
}

TEST(Objective, ValueAndGainAreOfWhatItIs) {
  Figures figures{2.0, {}};
  figures.spent[Expense::cost] = 3;
  figures.spent[Expense::energy] = 5;
  EXPECT_EQ(Objective::throughput.value(figures), 2);
  EXPECT_EQ(Objective(Expense::cost).value(figures), 3);
  EXPECT_EQ(Objective(Expense::energy).value(figures), 5);
  // Twice as many iterations per second; half of the expense.
  EXPECT_DOUBLE_EQ(Objective::throughput.gain(1, 2), 1.0);
  EXPECT_DOUBLE_EQ(Objective(Expense::energy).gain(1, 2), 0.5);
}

TEST(Objective, CostIsToldAlwaysAndTheOthersWhereTheyAreKnown) {
  EXPECT_TRUE(is_told(Expense::cost, false));
  EXPECT_TRUE(is_told(Expense::energy, true));
  EXPECT_FALSE(is_told(Expense::energy, false));
}

TEST(Objective, KeysOfFiles) {
  EXPECT_EQ(limit_key(Expense::cost), "max_usd_per_iteration");
  EXPECT_EQ(bound_key(Expense::energy), "bound_joules_per_iteration");
}

}  // namespace
}  // namespace sailor
