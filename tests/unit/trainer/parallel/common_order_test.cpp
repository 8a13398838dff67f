#include "trainer/parallel/common_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace sailor {
namespace {

using Kind = ScheduleStep::Kind;

// Pipelines that are cut alike, with numbers of microbatches of their own.
Plan draw_plan(std::mt19937& random, int interleave) {
  Plan plan;
  plan.zero = Zero::parameters;
  plan.interleave = interleave;
  const int groups = interleave > 1 ? 2 + static_cast<int>(random() % 3) : 1 + static_cast<int>(random() % 4);
  for (unsigned p = 1 + random() % 3; p > 0; --p) {
    PlanPipeline& pipeline = plan.pipelines.emplace_back();
    pipeline.microbatches = (1 + static_cast<int>(random() % 7)) * (interleave > 1 ? groups : 1);
    for (int s = 0; s < groups * interleave; ++s) {
      PlanStage stage;
      stage.first_layer = s;
      stage.end_layer = s + 1;
      pipeline.stages.push_back(stage);
    }
  }
  return plan;
}

RankSlot slot_of(int pipeline, int group) {
  RankSlot slot;
  slot.pipeline = pipeline;
  slot.stage = group;
  return slot;
}

TEST(CommonOrder, EachPipelineHasItsMicrobatchesOnceAndInOrder) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const Plan plan = draw_plan(random, 1 + trial % 3);
    int most = 0;
    for (const PlanPipeline& pipeline : plan.pipelines) most = std::max(most, pipeline.microbatches);
    for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
      const int own = plan.pipelines[static_cast<std::size_t>(p)].microbatches;
      int next = 0;
      for (int m = 0; m < most; ++m) {
        const int mine = own_microbatch(plan, p, m);
        if (mine >= 0) {
          EXPECT_EQ(mine, next++);
        }
      }
      EXPECT_EQ(next, own);
      EXPECT_EQ(own_microbatch(plan, p, most - 1) == own - 1, own == most || plan.interleave == 1);
    }
  }
}

// Groups of GPUs of one pipeline, none of which computes a step before it has what the step needs.
bool can_end(const std::vector<std::vector<ScheduleStep>>& of_group, int chunks) {
  const int groups = static_cast<int>(of_group.size());
  std::set<std::tuple<Kind, int, int>> done;  // stage, microbatch
  std::vector<std::size_t> next(of_group.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int g = 0; g < groups; ++g) {
      const auto& steps = of_group[static_cast<std::size_t>(g)];
      std::size_t& at = next[static_cast<std::size_t>(g)];
      for (; at < steps.size(); ++at, moved = true) {
        const ScheduleStep& step = steps[at];
        const int stage = step.chunk * groups + g, last = groups * chunks - 1;
        const bool ready =
            step.kind == Kind::forward
                ? stage == 0 || done.contains({Kind::forward, stage - 1, step.microbatch})
                : done.contains({Kind::forward, stage, step.microbatch}) &&
                      (stage == last || done.contains({Kind::backward, stage + 1, step.microbatch}));
        if (!ready) break;
        done.insert({step.kind, stage, step.microbatch});
      }
    }
  }
  for (std::size_t g = 0; g < of_group.size(); ++g)
    if (next[g] < of_group[g].size()) return false;
  return true;
}

TEST(CommonOrder, TheStepsOfAPipelineAreAScheduleAndPartOfTheCommonOne) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan = draw_plan(random, 1 + trial % 3);
    for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
      const PlanPipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
      std::vector<std::vector<ScheduleStep>> of_group;
      for (int g = 0; g < num_groups(plan, pipeline); ++g) {
        const RankSlot slot = slot_of(p, g);
        of_group.push_back(own_steps(plan, slot));
        EXPECT_EQ(of_group.back().size(),
                  2u * static_cast<unsigned>(pipeline.microbatches * plan.interleave));
        std::vector<ScheduleStep> expected = common_steps(plan, slot);
        for (ScheduleStep& step : expected) step.microbatch = own_microbatch(plan, p, step.microbatch);
        std::erase_if(expected, [](const ScheduleStep& step) { return step.microbatch < 0; });
        EXPECT_EQ(of_group.back(), expected);
      }
      EXPECT_TRUE(can_end(of_group, plan.interleave));
    }
    plan.zero = Zero::gradients;  // without gathers a pipeline has its own
    const PlanPipeline& first = plan.pipelines.front();
    EXPECT_EQ(own_steps(plan, slot_of(0, 0)),
              schedule_steps(plan.interleave, 0, num_groups(plan, first), first.microbatches));
  }
}

}  // namespace
}  // namespace sailor
