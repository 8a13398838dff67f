#include "tests/bench/evaluation/uniform_plans.h"

#include <algorithm>
#include <set>

#include "planner/simulator/simulate.h"
#include "planner/spec/error.h"

namespace sailor::bench {
std::vector<PlanStage> tp_groups(const Snapshot& snapshot, int tp) {
  std::vector<PlanStage> groups;
  for (const SnapshotNode& node : snapshot.nodes) {
    if (node.free_gpus.size() % static_cast<size_t>(tp) != 0) return {};
    for (size_t first = 0; first < node.free_gpus.size(); first += static_cast<size_t>(tp)) {
      PlanStage group;
      group.gpu_type = node.gpu_type;
      group.zone = node.zone;
      group.shape.tp = tp;
      group.node = node.name;
      const auto begin = node.free_gpus.begin() + static_cast<std::ptrdiff_t>(first);
      group.gpus.assign(begin, begin + tp);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

Plan uniform_plan(const JobSpec& job, const std::vector<PlanStage>& groups, int stages, int microbatch,
                  Neighbours neighbours) {
  const int replicas = static_cast<int>(groups.size()) / stages;
  const int layers = job.model.num_all_layers();
  Plan plan;
  plan.model = job.model.name;
  plan.global_batch = job.training.global_batch;
  plan.microbatch = microbatch;
  const std::vector<int> shares =
      share_microbatches(num_microbatches(plan.global_batch, microbatch), replicas);
  for (int d = 0; d < replicas; ++d) {
    PlanPipeline pipeline;
    pipeline.microbatches = shares[static_cast<size_t>(d)];
    for (int s = 0; s < stages; ++s) {
      const int at = neighbours == Neighbours::replicas ? s * replicas + d : d * stages + s;
      PlanStage stage = groups[static_cast<size_t>(at)];
      stage.first_layer = s * layers / stages;
      stage.end_layer = (s + 1) * layers / stages;
      pipeline.stages.push_back(std::move(stage));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

std::vector<UniformPlan> uniform_plans(const Inputs& inputs) {
  std::set<int> microbatches, degrees;
  for (const auto& [type, profile] : inputs.profiles.layers)
    for (const auto& [cell, times] : profile.cells) {
      microbatches.insert(cell.first);
      degrees.insert(cell.second.tp);
    }
  std::vector<UniformPlan> plans;
  for (int tp : degrees) {
    const std::vector<PlanStage> groups = tp_groups(inputs.snapshot, tp);
    const int count = static_cast<int>(groups.size());
    for (int stages = 1; stages <= std::min(count, inputs.job.model.num_all_layers()); ++stages) {
      if (count % stages != 0) continue;
      for (int microbatch : microbatches)
        for (Neighbours neighbours : {Neighbours::replicas, Neighbours::stages}) {
          if (num_microbatches(inputs.job.training.global_batch, microbatch) < count / stages) continue;
          // With one stage, or one pipeline, both orders are the same plan.
          if (neighbours == Neighbours::stages && (stages == 1 || stages == count)) continue;
          try {
            UniformPlan one{uniform_plan(inputs.job, groups, stages, microbatch, neighbours), {}};
            one.prediction = simulate(inputs.context(), one.plan, CostModel::published);
            plans.push_back(std::move(one));
          } catch (const InputError&) {
            // Not profiled.
          }
        }
    }
  }
  std::stable_sort(plans.begin(), plans.end(), [](const UniformPlan& a, const UniformPlan& b) {
    if (a.prediction.fits != b.prediction.fits) return a.prediction.fits;
    return a.prediction.iteration_s < b.prediction.iteration_s;
  });
  return plans;
}

}  // namespace sailor::bench
