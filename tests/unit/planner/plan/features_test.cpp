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
  // Who shares parameters shares gradients, and who shares these shares optimizer states; where GPUs with the
  // same weights split tokens TP groups do.
  for (PlanFeature feature : all_plan_features()) {
    PlanFeatures expected{feature};
    if (feature == PlanFeature::zero3) expected.insert(PlanFeature::zero2);
    if (expected.contains(PlanFeature::zero2) || feature == PlanFeature::hybrid_zero)
      expected.insert(PlanFeature::zero1);
    if (feature == PlanFeature::context_parallel) expected.insert(PlanFeature::sequence_parallel);
    EXPECT_EQ(parse_plan_features(to_string(feature)), expected);
  }
}

TEST(PlanFeatures, ADegreeOfZeroNeedsReplicasAndAllFeaturesBelowIt) {
  const auto degrees = [](const PlanFeatures& features, int replicas) {
    const std::span<const Zero> of = zero_degrees(features, replicas);
    return std::vector<Zero>(of.begin(), of.end());
  };
  EXPECT_EQ(degrees(all_plan_features(), 2),
            (std::vector<Zero>{Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters}));
  EXPECT_EQ(degrees(all_plan_features(), 1), std::vector<Zero>{Zero::none});
  EXPECT_EQ(degrees({PlanFeature::zero1}, 4).back(), Zero::optimizer);
  EXPECT_EQ(degrees({PlanFeature::zero2}, 4).back(), Zero::none);
}

TEST(PlanFeatures, RefusesWhatIsNone) {
  EXPECT_THAT(error_of([] { parse_plan_features("zero4"); }), HasSubstr("unknown plan feature \"zero4\""));
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
