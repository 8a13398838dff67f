#include "planner/search/problem/previous_plans.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "planner/plan/place.h"
#include "planner/plan/validate.h"

namespace sailor {
namespace {

// Tries fewer pipelines, by up to one in this many.
constexpr size_t kLeastPart = 5;

bool within_quotas(const Plan& plan, const ResourceSpec& quotas, const Snapshot& usable) {
  std::map<std::string, std::map<std::string, int>> used;  // [type][zone]
  std::map<std::string, int> of_type;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      used[stage.gpu_type][stage.zone] += stage.shape.gpus();
      of_type[stage.gpu_type] += stage.shape.gpus();
      for (const char* all : {"", kTotalGpus}) of_type[all] += stage.shape.gpus();
    }
  // Chunks of a group of GPUs are on the same ones.
  for (const auto& [type, most] : quotas.max_gpus)
    if (of_type[type] / plan.interleave > most) return false;
  for (const GpuLimit& limit : usable.limits)
    if (of_type[limit.gpu_type] / plan.interleave > limit.gpus) return false;
  for (const auto& [type, limits] : quotas.max_gpus_in_zone)
    for (const auto& [zone, most] : limits)
      if (used[type][zone] / plan.interleave > most) return false;
  return true;
}

// How many of the first pipelines there is room for.
size_t pipelines_that_fit(const Plan& plan, const ResourceSpec& quotas, const Snapshot& usable) {
  size_t fit = 0, tried = plan.pipelines.size() + 1;
  while (fit + 1 < tried) {
    const size_t middle =
        fit == 0 && tried > plan.pipelines.size() ? plan.pipelines.size() : (fit + tried) / 2;
    Plan part = plan;
    part.pipelines.resize(middle);
    try {
      if (!within_quotas(part, quotas, usable))
        throw std::runtime_error("more GPUs of a type than the job may use");
      place(part, usable);
      fit = middle;
    } catch (const std::runtime_error&) {
      tried = middle;
    }
  }
  return fit;
}

// Appends pipelines like the plan's own, in their order, up to as many again, as a pool to choose from.
void grow(Plan& plan, size_t most) {
  const size_t before = plan.pipelines.size();
  most = std::min(most, 2 * before);
  for (size_t j = 0; plan.pipelines.size() < most; ++j) plan.pipelines.push_back(plan.pipelines[j]);
}

// What check_plan() does not refuse, because the trainer supports it in every plan.
bool has_only(const PlanFeatures& offered, const Plan& plan) {
  if (plan.interleave > 1 && !offered.contains(PlanFeature::interleave)) return false;
  const auto [least, most] = std::minmax_element(
      plan.pipelines.begin(), plan.pipelines.end(),
      [](const PlanPipeline& a, const PlanPipeline& b) { return a.microbatches < b.microbatches; });
  const int round = plan.interleave > 1 ? num_groups(plan, *most) : 1;
  if (most->microbatches - least->microbatches > round && !offered.contains(PlanFeature::unlike_shares))
    return false;
  if (has_unlike_microbatches(plan) && !offered.contains(PlanFeature::unlike_microbatches)) return false;
  const auto cut_like = [](const PlanStage& a, const PlanStage& b) { return a.end_layer == b.end_layer; };
  return offered.contains(PlanFeature::unlike_cuts) ||
         std::ranges::all_of(plan.pipelines, [&](const PlanPipeline& pipeline) {
           return std::ranges::equal(pipeline.stages, plan.pipelines.front().stages, cut_like);
         });
}

// As still_possible(), but for groups of pipelines that share states.
std::vector<Plan> with_room(const Plan& previous, const JobSpec& job, const Snapshot& usable) {
  if (previous.model != job.model.name || previous.global_batch != job.training.global_batch ||
      previous.microbatch < 1)
    return {};
  Plan plan = previous;
  plan.prediction.reset();
  unplace(plan);
  // Pipelines whose GPU types and zones still have nodes come first, so that a lost zone costs only its own.
  std::map<std::pair<std::string, std::string>, bool> there;
  for (const SnapshotNode& node : usable.nodes)
    if (!node.free_gpus.empty()) there[{node.gpu_type, node.zone}] = true;
  std::erase_if(plan.pipelines, [&](const PlanPipeline& pipeline) {
    for (const PlanStage& stage : pipeline.stages)
      if (!there.count({stage.gpu_type, stage.zone})) return true;
    return false;
  });
  const int64_t total =
      plan.pipelines.empty()
          ? 0
          : num_microbatches(plan.global_batch, microbatch_of(plan, plan.pipelines.front()));
  const size_t fit = pipelines_that_fit(plan, job.resources, usable);
  if (fit == 0) return {};
  if (has_unlike_microbatches(plan)) {
    plan.pipelines.resize(fit);
    if (fit < previous.pipelines.size()) share_batch(plan);
    return {plan};
  }
  std::vector<Plan> plans;
  if (fit == previous.pipelines.size()) {
    plans.push_back(plan);
    grow(plan, static_cast<size_t>(total));
  } else {
    plan.pipelines.resize(fit);
  }
  const size_t most =
      fit == previous.pipelines.size() ? pipelines_that_fit(plan, job.resources, usable) : fit;
  // As many rounds with fewer pipelines: less to synchronise.
  for (size_t count = most; count > 0 && count * kLeastPart >= most * (kLeastPart - 1); --count) {
    const int64_t rounds = (total + static_cast<int64_t>(count) - 1) / static_cast<int64_t>(count);
    const bool last_of_these =
        count == 1 || (total + static_cast<int64_t>(count) - 2) / (static_cast<int64_t>(count) - 1) != rounds;
    if (count != most && !last_of_these) continue;
    plan.pipelines.resize(count);
    share_batch(plan);
    plans.push_back(plan);
  }
  return plans;
}

}  // namespace

std::vector<Plan> still_possible(const Plan& previous, const JobSpec& job, const Snapshot& usable) {
  std::vector<Plan> plans = with_room(previous, job, usable);
  for (Plan& plan : plans)
    if (!zero_groups_match(plan, job.model)) plan.zero_group = 0;
  return plans;
}

bool limit_features(Plan& plan, const PlanFeatures& offered) {
  plan.zero = std::min(plan.zero, zero_degrees(offered).back());
  if (plan.zero == Zero::none || !offered.contains(PlanFeature::hybrid_zero)) plan.zero_group = 0;
  if (!offered.contains(PlanFeature::recompute))
    for (PlanPipeline& pipeline : plan.pipelines)
      for (PlanStage& stage : pipeline.stages) stage.recompute = Recompute::none;
  return has_only(offered, plan);
}

bool still_complete(const Plan& previous, const JobSpec& job, const PlanFeatures& offered,
                    const Snapshot& usable) {
  const bool placed = std::ranges::all_of(previous.pipelines, [](const PlanPipeline& pipeline) {
    return std::ranges::none_of(pipeline.stages, [](const PlanStage& stage) { return stage.node.empty(); });
  });
  return placed && check_plan(previous, job, offered).empty() && has_only(offered, previous) &&
         check_plan(previous, usable).empty() && within_quotas(previous, job.resources, usable);
}

}  // namespace sailor
