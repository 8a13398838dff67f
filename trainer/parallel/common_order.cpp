#include "trainer/parallel/common_order.h"

#include <algorithm>

namespace sailor {
namespace {

const PlanPipeline& pipeline_of(const Plan& plan, int pipeline) {
  return plan.pipelines[static_cast<std::size_t>(pipeline)];
}

// Of those that exchange in every microbatch.
int most_microbatches(const Plan& plan, int pipeline) {
  const PipelineRange group = zero_group_of(plan, pipeline);
  int most = 0;
  for (int p = group.first; p < group.end; ++p) most = std::max(most, pipeline_of(plan, p).microbatches);
  return most;
}

std::vector<ScheduleStep> steps_of(const Plan& plan, const RankSlot& slot, int microbatches) {
  return schedule_steps(plan.interleave, slot.stage, num_groups(plan, pipeline_of(plan, slot.pipeline)),
                        microbatches, stage_of_chunk(plan, slot, 0).weight_delay);
}

}  // namespace

std::vector<ScheduleStep> common_steps(const Plan& plan, const RankSlot& slot) {
  return steps_of(plan, slot, most_microbatches(plan, slot.pipeline));
}

int own_microbatch(const Plan& plan, int pipeline, int microbatch) {
  const int64_t own = pipeline_of(plan, pipeline).microbatches, all = most_microbatches(plan, pipeline);
  if (plan.interleave > 1) return microbatch < own ? microbatch : -1;
  const int64_t before = microbatch * own / all;
  return (microbatch + 1) * own / all > before ? static_cast<int>(before) : -1;
}

std::vector<ScheduleStep> own_steps(const Plan& plan, const RankSlot& slot) {
  if (plan.zero < Zero::parameters)
    return steps_of(plan, slot, pipeline_of(plan, slot.pipeline).microbatches);
  std::vector<ScheduleStep> steps = common_steps(plan, slot);
  for (ScheduleStep& step : steps) step.microbatch = own_microbatch(plan, slot.pipeline, step.microbatch);
  std::erase_if(steps, [](const ScheduleStep& step) { return step.microbatch < 0; });
  return steps;
}

const PlanStage& stage_of_chunk(const Plan& plan, const RankSlot& slot, int chunk) {
  const PlanPipeline& pipeline = pipeline_of(plan, slot.pipeline);
  return pipeline.stages[static_cast<std::size_t>(chunk * num_groups(plan, pipeline) + slot.stage)];
}

}  // namespace sailor
