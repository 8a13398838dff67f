#include "planner/report/candidate_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

test::Instance instance() {
  test::Instance in = test::empty_instance(4, 16);
  in.add_type("fast", 0.01, 400'000'000, 4);
  in.add_type("slow", 0.03, 400'000'000, 1);
  in.add_node("f0", "fast", 2);
  in.add_node("s0", "slow", 2);
  return in;
}

TEST(CandidateTable, MarksTheChosenPlanAndStaysNarrow) {
  const test::Instance in = instance();
  PlanOptions options;
  options.time_limit_s = 30;
  const SearchResult result = search(in.context(), options);
  const std::string table = candidate_table(in.context(), result);
  EXPECT_EQ(table.back(), '\n');
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, 6), "  GPUS");
  std::getline(lines, line);
  EXPECT_EQ(line[0], '*') << table;
  std::istringstream again(table);
  while (std::getline(again, line)) {
    if (line.rfind("left out:", 0) != 0) {
      EXPECT_LE(line.size(), 120u) << line;
    }
  }
}

TEST(CandidateTable, SaysWhyThereIsNoPlan) {
  const test::Instance in = instance();
  SearchResult result;
  result.reason = "too few free GPUs";
  result.rejected["memory"] = 3;
  const std::string table = candidate_table(in.context(), result);
  EXPECT_NE(table.find("no plan: too few free GPUs"), std::string::npos);
  EXPECT_NE(table.find("3 x memory"), std::string::npos);
}

TEST(StageTable, HasARowPerStageAndTheSum) {
  const test::Instance in = instance();
  const Plan plan = test::make_plan(in, 1, {{{0, 3, "fast", 1}, {3, 6, "slow", 1}}});
  const std::string table = stage_table(plan, simulate(in.context(), plan));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4) << table;
  EXPECT_NE(table.find("0-2"), std::string::npos) << table;
  EXPECT_NE(table.find("iteration "), std::string::npos) << table;
}

TEST(ResultJson, HoldsPlansPredictionsAndBounds) {
  const test::Instance in = instance();
  PlanOptions options;
  options.time_limit_s = 30;
  const SearchResult result = search(in.context(), options);
  const auto json = nlohmann::json::parse(result_json(in.context(), result));
  EXPECT_EQ(json.at("sailor_plan_result"), 1);
  EXPECT_EQ(json.at("status"), "found");
  EXPECT_EQ(json.at("candidates").size(), result.candidates.size());
  EXPECT_EQ(json.at("candidates")[0].at("plan").at("sailor_plan"), 1);
  EXPECT_DOUBLE_EQ(json.at("candidates")[0].at("prediction").at("iteration_s"),
                   result.candidates[0].prediction.iteration_s);
  EXPECT_LE(json.at("bound_iteration_s").get<double>(), result.candidates[0].prediction.iteration_s);
  EXPECT_FALSE(json.contains("search_s")) << "times spent stand apart from the result";
}

}  // namespace
}  // namespace sailor
