#include "planner/explain/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "planner/simulator/tightest_stage.h"

namespace sailor {
namespace {

constexpr double kBinds = 0.005;

std::string constraint_of(const WhatIf& what, const Candidate& chosen) {
  switch (what.kind) {
    case WhatIf::Kind::node:
      return fmt::format("GPUs of type {}", what.gpu_type);
    case WhatIf::Kind::memory: {
      const StagePrediction& stage = chosen.prediction.stages.at(tightest_stage(chosen.prediction).index);
      return fmt::format("memory of pipeline {}, stage {}", stage.pipeline, stage.stage);
    }
    case WhatIf::Kind::budget:
      return fmt::format("the {}", kind_of(what.expense).limit);
    default:
      return "the limit on throughput";
  }
}

// With the largest batch that all pipelines share evenly: how many more tokens per second the same plan
// would make. 0 where they share evenly as it is.
double gain_of_even_batch(const PlanningContext& context, CostModel model, const Candidate& chosen,
                          int64_t& batch) {
  if (has_unlike_microbatches(chosen.plan)) return 0;
  const auto pipelines = static_cast<int64_t>(chosen.plan.pipelines.size());
  // Interleaved, microbatches go in rounds of as many as a pipeline has groups of GPUs.
  const size_t groups = chosen.plan.pipelines[0].stages.size() / static_cast<size_t>(chosen.plan.interleave);
  const int64_t round = chosen.plan.interleave > 1 ? static_cast<int64_t>(groups) : 1;
  const int64_t unit = pipelines * microbatch_of(chosen.plan, chosen.plan.pipelines[0]) * round;
  batch = chosen.plan.global_batch / unit * unit;
  if (batch == 0 || batch == chosen.plan.global_batch) return 0;
  for (const PlanPipeline& pipeline : chosen.plan.pipelines)  // shares by speed are another matter
    if (std::abs(pipeline.microbatches - chosen.plan.pipelines[0].microbatches) > round) return 0;
  JobSpec job = context.job;
  Plan plan = chosen.plan;
  job.training.global_batch = plan.global_batch = batch;
  for (PlanPipeline& pipeline : plan.pipelines)
    pipeline.microbatches = static_cast<int>(batch / unit * round);
  const Prediction even =
      simulate({job, context.snapshot, context.catalog, context.profiles, context.framework}, plan, model);
  if (even.iteration_s <= 0) return 0;
  return static_cast<double>(batch) / even.iteration_s /
             (static_cast<double>(chosen.plan.global_batch) / chosen.prediction.iteration_s) -
         1;
}

// What is gained beyond another gain.
double beyond(Objective objective, double gain, double other) {
  return objective.expense() ? 1 - (1 - gain) / (1 - other) : (1 + gain) / (1 + other) - 1;
}

}  // namespace

std::vector<Binding> binding_constraints(const PlanningContext& context, CostModel model,
                                         const Candidate& chosen, const std::vector<WhatIf>& answers) {
  const Objective objective = context.job.objective;
  std::vector<Binding> binding;
  double without_change = 0;  // gained by planning alone, where the plan was given
  for (const WhatIf& what : answers)
    if (what.kind == WhatIf::Kind::planner) without_change = std::max(0.0, what.gain);
  if (without_change > kBinds)
    binding.push_back({fmt::format("the plan itself: the planner's own choice is {:.1f}% {}",
                                   100 * without_change, objective.better()),
                       without_change});
  for (const WhatIf& what : answers) {
    const double gain = beyond(objective, what.gain, without_change);
    if (!what.loosens() || gain < kBinds) continue;
    binding.push_back({fmt::format("{}: {:.1f}% {} with {}", constraint_of(what, chosen), 100 * gain,
                                   objective.better(), what.change),
                       gain});
  }
  int64_t batch = 0;
  const double gain = gain_of_even_batch(context, model, chosen, batch);
  if (gain > kBinds)
    binding.push_back(
        {fmt::format(
             "the global batch: its microbatches cannot be divided evenly among the pipelines; with {} "
             "sequences in place of {} this plan makes {:.1f}% more tokens per second",
             batch, chosen.plan.global_batch, 100 * gain),
         gain});
  std::stable_sort(binding.begin(), binding.end(),
                   [](const Binding& a, const Binding& b) { return a.gain > b.gain; });
  return binding;
}

}  // namespace sailor
