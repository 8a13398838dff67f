#include "tests/bench/baselines.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/spec/error.h"

namespace sailor::bench {
namespace {

std::string file(const std::string& text) {
  const std::string path = testing::TempDir() + "baselines_test.csv";
  std::ofstream(path) << text;
  return path;
}

Scenario scenario() {
  Scenario s;
  s.name = "row";
  return s;
}

TEST(Csv, CellsByColumnAndNumbersWithTheirPlace) {
  const auto rows = read_csv(file("a,b,c\n1.5,\"x, y\",none\n\n,z\n"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(*rows[0].number("a"), 1.5);
  EXPECT_EQ(rows[0].text("b"), "x, y");
  EXPECT_FALSE(rows[0].number("c").has_value());
  EXPECT_EQ(rows[1].where.line, 4);
  EXPECT_EQ(rows[1].text("c"), "");
  try {
    rows[1].number("b");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("baselines_test.csv:4: b: \"z\" is not a number"),
              std::string::npos);
  }
}

TEST(Baselines, EveryPlannerOfTheRowMustBeReached) {
  const auto all = load_baselines(
      file("planner,scenario,iter_per_s,usd_per_iter,note\nA,row,0.5,2,\nB,row,0.6,3,\nC,other,9,9,\n"
           "D,row,,,no valid plan\nE,row,0.9,1,scored too well\n"));
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(against(scenario(), all[3], 0.55, 10), Against::no_plan);
  EXPECT_EQ(against(scenario(), all[4], 0.55, 10), Against::noted);
  const Standing second = stand(scenario(), all, 0.55, 10);
  EXPECT_EQ(second.beaten, 1);
  EXPECT_EQ(second.compared, 2);
  EXPECT_EQ(second.noted, 1);
  ASSERT_EQ(second.better.size(), 1u);
  EXPECT_EQ(second.better[0], "B finds 0.60000 iterations/s at 3.0000 USD");
  EXPECT_EQ(second.noted_better.size(), 1u);
  // As good to the digits of the file is enough.
  EXPECT_EQ(stand(scenario(), all, 0.6 * (1 - 4e-5), 10).beaten, 2);
  EXPECT_EQ(stand(scenario(), all, 0, 0).beaten, 0);
  EXPECT_TRUE(load_baselines("/nowhere.csv").empty());
}

TEST(Baselines, PlansOutsideTheLimitsOfTheRowAreNoAnswerToIt) {
  const std::vector<Baseline> all = {{"A", "row", "", 0.5, 2}, {"B", "row", "", 0.1, 1}};
  Scenario dear = scenario();
  dear.max_usd = 1.5;
  EXPECT_EQ(stand(dear, all, 0.2, 1.4).compared, 1);
  EXPECT_EQ(stand(dear, all, 0.2, 1.4).beaten, 1);
  Scenario slow = scenario();
  slow.objective = Expense::cost;
  slow.min_iter_per_s = 0.2;
  EXPECT_EQ(stand(slow, all, 0.3, 1.9).compared, 1);
  EXPECT_EQ(stand(slow, all, 0.3, 1.9).beaten, 1);
  EXPECT_EQ(stand(slow, all, 0.3, 2.1).beaten, 0);
}

}  // namespace
}  // namespace sailor::bench
