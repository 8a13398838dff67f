#include "planner/report/candidate_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

test::Instance table_instance() {
  test::Instance in = test::empty_instance(4, 16);
  in.add_type("fast", 0.01, 400'000'000, 4);
  in.add_type("slow", 0.03, 400'000'000, 1);
  in.add_node("f0", "fast", 2);
  in.add_node("s0", "slow", 2);
  return in;
}

TEST(CandidateTable, MarksTheChosenPlanAndStaysNarrow) {
  const test::Instance in = table_instance();
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
    if (line.rfind("rejected:", 0) != 0) {
      EXPECT_LE(line.size(), 120u) << line;
    }
  }
}

TEST(CandidateTable, NamesZonesWhereThereAreSeveralAndCountsThemWhereThereIsNoRoom) {
  test::Instance in = test::empty_instance(4, 16);
  const std::string type = "a-type-of-gpus-with-a-long-name";
  in.add_type(type, 0.01, 400'000'000, 4);
  for (int zone = 0; zone < 5; ++zone)
    in.add_node("n" + std::to_string(zone), type, 2, "a-zone-with-a-long-name-" + std::to_string(zone));
  Plan plan = test::make_plan(in, 1, std::vector<std::vector<test::StageSpec>>(5, {{0, 6, type, 2}}));
  SearchResult result;
  result.status = SearchStatus::found;
  for (int zones : {1, 5}) {
    for (size_t j = 0; j < plan.pipelines.size(); ++j)
      plan.pipelines[j].stages[0].zone =
          "a-zone-with-a-long-name-" + std::to_string(static_cast<int>(j) % zones);
    result.candidates.push_back({plan, simulate(in.context(), plan)});
  }
  const std::string table = candidate_table(in.context(), result);
  std::istringstream lines(table);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 120u) << line;
  EXPECT_NE(table.find("10 " + type + "@a-zone"), std::string::npos) << table;
  EXPECT_NE(table.find("10 " + type + " in 5 zones"), std::string::npos) << table;
}

TEST(CandidateTable, SaysTheCostOfARunAndTheGap) {
  test::Instance in = table_instance();
  in.job.training.steps = 1000;
  PlanOptions options;
  options.time_limit_s = 30;
  const SearchResult result = search(in.context(), options);
  const std::string table = candidate_table(in.context(), result);
  const double usd = result.candidates.at(0).prediction.usd_per_iteration();
  EXPECT_NE(table.find(" " + fmt::format("{:.4g}", 1000 * usd) + " "), std::string::npos) << table;
  EXPECT_NE(table.find("(gap "), std::string::npos) << table;
  in.job.training.steps = 0;
  EXPECT_NE(candidate_table(in.context(), result).find(" - "), std::string::npos);
}

TEST(CandidateTable, SaysWhyThereIsNoPlan) {
  const test::Instance in = table_instance();
  SearchResult result;
  result.reason = "too few free GPUs";
  result.rejected["memory"] = 3;
  const std::string table = candidate_table(in.context(), result);
  EXPECT_NE(table.find("no plan: too few free GPUs"), std::string::npos);
  EXPECT_NE(table.find("3 x memory"), std::string::npos);
}

TEST(CandidateTable, SaysWhatPlansDoBesidesInAColumnOfItsOwn) {
  const test::Instance in = table_instance();
  Plan plan = test::make_plan(in, 1, {{{0, 2, "fast", 1}, {2, 4, "fast", 1}, {4, 6, "slow", 1}}});
  SearchResult result;
  result.status = SearchStatus::found;
  result.candidates.push_back({plan, simulate(in.context(), plan)});
  EXPECT_EQ(candidate_table(in.context(), result).find("WITH"), std::string::npos);
  for (const size_t i : {0, 1}) plan.pipelines[0].stages[i].recompute = Recompute::full;
  plan.zero = Zero::optimizer;
  result.candidates.push_back({plan, simulate(in.context(), plan)});
  const std::string table = candidate_table(in.context(), result);
  EXPECT_NE(table.find(" WITH "), std::string::npos) << table;
  EXPECT_NE(table.find(" 1  zero1 recompute:0-1 "), std::string::npos) << table;
}

TEST(ResultJson, HoldsPlansPredictionsAndBounds) {
  const test::Instance in = table_instance();
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
