#include "trainer/record/rank_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sailor {
namespace {

using ::testing::ElementsAre;

TEST(RankTrace, HasARowPerRankFromTheFirstTaskOn) {
  PlanStage stage;
  stage.gpu_type = "A";
  Plan plan;
  plan.pipelines = {{2, {stage, stage}}, {1, {stage}}};
  const auto trace = nlohmann::json::parse(
      rank_trace(plan, {{0, {{TaskKind::forward, 1, 100.5, 101}, {TaskKind::update, -1, 102, 102.5}}},
                        {1, {{TaskKind::wait, 1, 100.25, 101}}},
                        {2, {{TaskKind::backward, 0, 101, 101.5}}}}));
  std::vector<std::string> spans, names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X")
      spans.push_back(event.at("name").get<std::string>() + " " + std::to_string(event.at("pid").get<int>()) +
                      "." + std::to_string(event.at("tid").get<int>()) + " " +
                      std::to_string(event.at("ts").get<int>()));
    if (event.at("name") == "thread_name") names.push_back(event.at("args").at("name"));
  }
  EXPECT_THAT(spans, ElementsAre("F1 0.0 250000", "update 0.0 1750000", "wait 1 0.1 0", "B0 1.2 750000"));
  EXPECT_THAT(names, ElementsAre("rank 0: stage 0, A", "rank 1: stage 1, A", "rank 2: stage 0, A"));
}

}  // namespace
}  // namespace sailor
