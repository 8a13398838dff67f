#include "tests/bench/native/judge.h"

#include <algorithm>

#include "planner/plan/validate.h"
#include "planner/spec/error.h"

namespace sailor::bench {

void keep_faster(std::optional<Rival>& best, std::optional<Rival> other) {
  if (other && (!best || other->iteration_s < best->iteration_s)) best = std::move(other);
}

std::optional<Prediction> Judge::prediction(const Plan& plan) {
  ++simulations_;
  try {
    return simulate(context_, plan, CostModel::native);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::optional<Verdict> Judge::verdict(const Plan& plan) {
  const std::optional<Prediction> of_plan = prediction(plan);
  if (!of_plan) return std::nullopt;
  Verdict out{of_plan->iteration_s, 0};
  for (const StagePrediction& stage : of_plan->stages)
    out.missing_bytes +=
        static_cast<double>(std::max<int64_t>(0, stage.memory.total() - stage.capacity_bytes));
  return out;
}

std::vector<std::string> Judge::violations(const Plan& plan) const {
  std::vector<std::string> out = check_plan(plan, context_.job, allowed_);
  const std::vector<std::string> on_cluster = check_plan(plan, context_.snapshot);
  out.insert(out.end(), on_cluster.begin(), on_cluster.end());
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages)
      if (stage.node.empty()) return out.push_back("a stage is not placed"), out;
  return out;
}

}  // namespace sailor::bench
