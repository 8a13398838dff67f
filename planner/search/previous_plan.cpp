#include "planner/search/previous_plan.h"

#include <map>
#include <stdexcept>
#include <utility>

#include "planner/plan/place.h"

namespace sailor {
namespace {

bool within_quotas(const Plan& plan, const std::map<std::string, int>& max_gpus) {
  std::map<std::string, int> used;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) used[stage.gpu_type] += stage.tp;
  for (const auto& [type, most] : max_gpus)
    if (used[type] > most) return false;
  return true;
}

// How many of the first pipelines there is room for.
size_t pipelines_that_fit(const Plan& plan, const std::map<std::string, int>& max_gpus,
                          const Snapshot& usable) {
  size_t fit = 0, tried = plan.pipelines.size() + 1;
  while (fit + 1 < tried) {
    const size_t middle =
        fit == 0 && tried > plan.pipelines.size() ? plan.pipelines.size() : (fit + tried) / 2;
    Plan part = plan;
    part.pipelines.resize(middle);
    try {
      if (!within_quotas(part, max_gpus))
        throw std::runtime_error("more GPUs of a type than the job may use");
      place(part, usable);
      fit = middle;
    } catch (const std::runtime_error&) {
      tried = middle;
    }
  }
  return fit;
}

}  // namespace

std::optional<Plan> still_possible(const Plan& previous, const JobSpec& job, const Snapshot& usable) {
  if (previous.model != job.model.name || previous.global_batch != job.training.global_batch ||
      previous.microbatch < 1)
    return std::nullopt;
  Plan plan = previous;
  plan.prediction.reset();
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages) {
      stage.node.clear();
      stage.gpus.clear();
    }
  // Pipelines whose GPU types and zones still have nodes come first, so that a lost zone costs only its own.
  std::map<std::pair<std::string, std::string>, bool> there;
  for (const SnapshotNode& node : usable.nodes)
    if (!node.free_gpus.empty()) there[{node.gpu_type, node.zone}] = true;
  std::erase_if(plan.pipelines, [&](const PlanPipeline& pipeline) {
    for (const PlanStage& stage : pipeline.stages)
      if (!there.count({stage.gpu_type, stage.zone})) return true;
    return false;
  });
  const size_t fit = pipelines_that_fit(plan, job.resources.max_gpus, usable);
  if (fit == 0) return std::nullopt;
  if (fit == previous.pipelines.size()) return plan;
  plan.pipelines.resize(fit);
  const std::vector<int> shares =
      share_microbatches(num_microbatches(plan.global_batch, plan.microbatch), static_cast<int>(fit));
  for (size_t j = 0; j < fit; ++j) plan.pipelines[j].microbatches = shares[j];
  return plan;
}

}  // namespace sailor
