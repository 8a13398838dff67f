#include "trainer/parallel/gradient_buckets.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "trainer/parallel/gradient_buffer.h"

namespace sailor {
namespace {

constexpr int kLayers = 7;

Plan random_plan(std::mt19937& random) {
  Plan plan;
  for (unsigned p = 1 + random() % 3; p > 0; --p) {
    std::set<int> ends = {kLayers};
    for (unsigned i = random() % 4; i > 0; --i) ends.insert(1 + static_cast<int>(random() % (kLayers - 1)));
    PlanPipeline pipeline;
    int next = 0;
    for (const int end : ends) {
      constexpr int kDegrees[] = {1, 2, 3, 4};
      PlanStage stage;
      stage.first_layer = next;
      stage.end_layer = next = end;
      stage.shape.tp = kDegrees[random() % 4];
      pipeline.stages.push_back(stage);
    }
    plan.pipelines.push_back(pipeline);
  }
  return plan;
}

// A matrix of 48 x `columns` in all, a sharded bias and a replicated norm per layer.
std::vector<Parameter> parameters_of(const Plan& plan, const RankSlot& slot, int64_t columns) {
  const PlanStage& stage =
      plan.pipelines[static_cast<std::size_t>(slot.pipeline)].stages[static_cast<std::size_t>(slot.stage)];
  std::vector<Parameter> all;
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    all.push_back({std::to_string(layer) + ".norm", layer, false, false, at::zeros({columns})});
    all.push_back(
        {std::to_string(layer) + ".w", layer, true, true, at::zeros({48 / slot.shape.tp, columns})});
    all.push_back({std::to_string(layer) + ".b", layer, true, false, at::zeros({48 / slot.shape.tp})});
  }
  return all;
}

TEST(GradientBuckets, EveryMemberOfAGroupSumsTheSameElementsInTheSameOrderAndNoneTwice) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const Plan plan = random_plan(random);
    const RankLayout layout(plan);
    const std::vector<GradientGroup> groups = gradient_groups(plan, layout);
    const int64_t columns = trial % 2 ? 16 : 40'000;  // buckets of several layers, and of one
    // What a group sums, in order, as (name, first element in the whole parameter, count).
    using Run = std::tuple<std::string, int64_t, int64_t>;
    std::map<std::size_t, std::map<int, std::vector<Run>>> summed;  // by group and member
    for (const RankSlot& slot : layout.slots()) {
      std::vector<Parameter> held = parameters_of(plan, slot, columns);
      std::vector<Parameter*> parameters;
      for (Parameter& parameter : held) parameters.push_back(&parameter);
      const GradientLayout result = gradient_layout(plan, layout, slot.rank, groups, parameters);
      ASSERT_EQ(result.order.size(), parameters.size());
      int next_end = kLayers + 1;
      std::map<std::string, std::set<int64_t>> seen;
      for (const GradientBucket& bucket : result.buckets) {
        ASSERT_LT(bucket.first_layer, next_end) << "buckets come from the last layer down";
        next_end = bucket.first_layer + 1;
        EXPECT_EQ(bucket.summed, !groups.empty());
        for (const GradientPart& part : bucket.parts) {
          int64_t count = 0;
          for (const GradientSegment& segment : part.segments) {
            const Parameter& parameter = *result.order[segment.parameter];
            const int64_t own = parameter.sharded ? slot.tp_rank * parameter.value.numel() : 0;
            summed[part.group][slot.rank].emplace_back(parameter.name, own + segment.first, segment.count);
            ASSERT_TRUE(seen[parameter.name].insert(segment.first).second) << "summed twice";
            count += segment.count;
          }
          ASSERT_EQ(part.count, count);
        }
      }
    }
    for (const auto& [group, members] : summed) {
      ASSERT_EQ(members.size(), plan.pipelines.size());
      for (const auto& [rank, runs] : members) ASSERT_EQ(runs, members.begin()->second) << "rank " << rank;
    }
  }
}

TEST(GradientBuffer, ForgetsTheIterationBeforeAndAddsInTheWiderType) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    Parameter parameter{"p", 0, false, false, at::ones({3, 2}, type).set_requires_grad(true)};
    GradientBuffer buffer({&parameter});
    EXPECT_EQ(buffer.flat().scalar_type(), gradient_type(type));
    for (int iteration = 0; iteration < 2; ++iteration) {
      buffer.begin_iteration();
      for (int microbatch = 0; microbatch < 3; ++microbatch) {
        (parameter.value * 0.5).sum().backward();
        EXPECT_EQ(parameter.value.grad().data_ptr(), buffer.flat().data_ptr()) << "not added in place";
        buffer.collect({0});
      }
      EXPECT_TRUE(at::equal(buffer.view(0), at::full({3, 2}, 1.5, gradient_type(type))));
    }
  }
}

TEST(GradientBuffer, AddsGradientsOfAScaledLossWithoutTheScale) {
  Parameter parameter{"p", 0, false, false, at::ones({3, 2}, at::kBFloat16).set_requires_grad(true)};
  GradientBuffer buffer({&parameter});
  for (const double scale : {256.0, 1.0, 512.0}) {
    buffer.begin_iteration(scale);
    for (int microbatch = 0; microbatch < 3; ++microbatch) {
      (parameter.value * (0.5 * scale)).sum().backward();
      buffer.collect({0});
    }
    EXPECT_TRUE(at::equal(buffer.view(0), at::full({3, 2}, 1.5, at::kFloat))) << scale;
  }
}

TEST(GradientBuffer, AParameterThatNoGradientReachedHasZeros) {
  Parameter parameter{"p", 0, false, false, at::ones({4}).set_requires_grad(true)};
  GradientBuffer buffer({&parameter});
  buffer.begin_iteration();
  parameter.value.sum().backward();
  buffer.collect({0});
  buffer.begin_iteration();
  buffer.collect({0});
  EXPECT_TRUE(at::equal(buffer.flat(), at::zeros({4})));
}

}  // namespace
}  // namespace sailor
