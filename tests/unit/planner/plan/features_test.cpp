#include "planner/plan/features.h"

#include <gmock/gmock.h>

#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using test::error_of;
using ::testing::HasSubstr;

TEST(PlanFeatures, AreNamed) {
  EXPECT_EQ(parse_plan_features("zero1,unlike-cuts"),
            (PlanFeatures{PlanFeature::unlike_cuts, PlanFeature::zero1}));
  EXPECT_EQ(parse_plan_features("all"), all_plan_features());
  EXPECT_TRUE(parse_plan_features("none").empty());
  for (PlanFeature feature : all_plan_features())
    EXPECT_EQ(parse_plan_features(to_string(feature)), PlanFeatures{feature});
}

TEST(PlanFeatures, RefusesWhatIsNone) {
  EXPECT_THAT(error_of([] { parse_plan_features("zero2"); }), HasSubstr("unknown plan feature \"zero2\""));
  EXPECT_THAT(error_of([] { parse_plan_features("zero1,zero1"); }), HasSubstr("is listed twice"));
  EXPECT_THAT(error_of([] { parse_plan_features(""); }), HasSubstr("no plan feature"));
}

TEST(PlanFeatures, TheTrainerRunsNothingThatThereIsNot) {
  for (PlanFeature feature : all_plan_features()) EXPECT_TRUE(trainable_features().contains(feature));
  for (PlanFeature feature : trainable_features()) EXPECT_TRUE(predictable_features().contains(feature));
  EXPECT_FALSE(trainable_features().contains(PlanFeature::selective_recompute));
}

}  // namespace
}  // namespace sailor
