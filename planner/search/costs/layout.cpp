#include "planner/search/costs/layout.h"

#include <algorithm>

#include "planner/simulator/published_model.h"

namespace sailor {
namespace {

// Calls `visit` for every pair of options that face each other, replica j to replica j, with the number of
// such replicas.
template <typename Visit>
void facing_runs(const Layout::Stage& upstream, const Layout::Stage& downstream, Visit visit) {
  size_t a = 0, b = 0;
  int left_a = upstream.runs[0].replicas, left_b = downstream.runs[0].replicas;
  while (true) {
    const int step = std::min(left_a, left_b);
    visit(upstream.runs[a].option, downstream.runs[b].option, step);
    left_a -= step;
    left_b -= step;
    if (left_a == 0 && ++a < upstream.runs.size()) left_a = upstream.runs[a].replicas;
    if (left_b == 0 && ++b < downstream.runs.size()) left_b = downstream.runs[b].replicas;
    if (a == upstream.runs.size() || b == downstream.runs.size()) break;
  }
}

double stage_sync_s(const StageCosts& costs, const Resources& resources, const Layout::Stage& stage,
                    int replicas) {
  if (replicas < 2) return 0;
  ReplicaShape smallest = resources.options[stage.runs[0].option].shape;
  for (const Layout::Run& run : stage.runs)
    smallest = std::min(smallest, resources.options[run.option].shape);
  double slowest = 0;
  const auto pair = [&](int a, int b) {
    slowest =
        std::max(slowest, costs.sync_s(a, b, smallest.parts(), stage.first_layer, stage.end_layer, replicas));
  };
  for (size_t r = 0; r < stage.runs.size(); ++r) {
    if (stage.runs[r].replicas > 1) pair(stage.runs[r].option, stage.runs[r].option);
    if (r + 1 < stage.runs.size()) pair(stage.runs[r].option, stage.runs[r + 1].option);
  }
  return slowest;
}

// The ring has a wrap here: every replica pays for what it sends to the next.
double stage_sync_charge(const StageCosts& costs, const Layout::Stage& stage, int replicas) {
  if (replicas < 2) return 0;
  double charge = 0;
  const auto pair = [&](int a, int b, int times) {
    charge += times * costs.sync_charge(a, b, stage.first_layer, stage.end_layer, replicas);
  };
  for (size_t r = 0; r < stage.runs.size(); ++r) {
    const auto& [option, count] = stage.runs[r];
    if (count > 1) pair(option, option, count - 1);
    pair(option, stage.runs[(r + 1) % stage.runs.size()].option, 1);
  }
  return charge;
}

}  // namespace

int Layout::Stage::option_of(int replica) const {
  for (const Run& run : runs) {
    if (replica < run.replicas) return run.option;
    replica -= run.replicas;
  }
  return runs.back().option;
}

void Layout::Stage::append(int option, int replicas) {
  if (replicas <= 0) return;
  if (!runs.empty() && runs.back().option == option)
    runs.back().replicas += replicas;
  else
    runs.push_back({option, replicas});
}

double iteration_s(const std::vector<StageParts>& stages, double microbatches) {
  const size_t P = stages.size();
  double bottleneck = 0, sum = 0, update = 0, sync = 0;
  for (size_t i = 0; i < P; ++i) {
    const StageParts& stage = stages[i];
    const double gradient_before = i > 0 ? stages[i - 1].gradient_s : 0;
    const double comm = published::stage_comm_s(static_cast<int>(i), static_cast<int>(P), stage.activation_s,
                                                gradient_before);
    bottleneck = std::max(bottleneck, stage.compute_s + comm);
    sum += stage.compute_s + comm;
    update = std::max(update, stage.update_s);
    sync = std::max(sync, stage.sync_s);
  }
  return (microbatches - 1) * bottleneck + sum + update + sync;
}

LayoutValue evaluate(const StageCosts& costs, const Resources& resources, const Layout& layout, int replicas,
                     double microbatches) {
  const size_t P = layout.stages.size();
  std::vector<StageParts> times(P);
  double charge_per_s = 0, fixed = 0;
  for (size_t i = 0; i < P; ++i) {
    const Layout::Stage& stage = layout.stages[i];
    StageParts& t = times[i];
    for (const auto& [option, count] : stage.runs) {
      t.compute_s = std::max(t.compute_s, costs.compute_s(option, stage.first_layer, stage.end_layer));
      t.update_s = std::max(t.update_s, costs.update_s(option, stage.first_layer));
      charge_per_s += count * resources.options[option].rate.idle_per_s;
      fixed += count * microbatches * costs.work_charge(option, stage.first_layer, stage.end_layer);
    }
    if (i + 1 < P)
      facing_runs(stage, layout.stages[i + 1], [&](int a, int b, int count) {
        t.activation_s = std::max(t.activation_s, costs.activation_s(a, b, stage.end_layer));
        t.gradient_s = std::max(t.gradient_s, costs.gradient_s(b, a, stage.end_layer));
        fixed += count * microbatches * costs.message_charge(a, b, stage.end_layer);
      });
    t.sync_s = stage_sync_s(costs, resources, stage, replicas);
    fixed += stage_sync_charge(costs, stage, replicas);
  }
  LayoutValue out;
  out.iteration_s = iteration_s(times, microbatches);
  out.charge = out.iteration_s * charge_per_s + fixed;
  return out;
}

bool within_resources(const Resources& resources, const Layout& layout) {
  std::vector<int64_t> left(resources.capacity.begin(), resources.capacity.end());
  for (const Layout::Stage& stage : layout.stages)
    for (const auto& [option, replicas] : stage.runs) resources.take(option, replicas, left);
  return std::all_of(left.begin(), left.end(), [](int64_t gpus) { return gpus >= 0; });
}

Plan plan_of(const PlanningContext& context, const Resources& resources, const Layout& layout, int microbatch,
             int replicas) {
  Plan plan;
  plan.model = context.job.model.name;
  plan.global_batch = context.job.training.global_batch;
  plan.microbatch = microbatch;
  const std::vector<int> shares =
      share_microbatches(num_microbatches(plan.global_batch, microbatch), replicas);
  for (int j = 0; j < replicas; ++j) {
    PlanPipeline pipeline;
    pipeline.microbatches = shares[j];
    for (const Layout::Stage& chosen : layout.stages) {
      const Option& option = resources.options[chosen.option_of(j)];
      PlanStage stage;
      stage.first_layer = chosen.first_layer;
      stage.end_layer = chosen.end_layer;
      stage.gpu_type = option.gpu_type;
      stage.zone = option.zone;
      stage.shape = option.shape;
      pipeline.stages.push_back(std::move(stage));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

}  // namespace sailor
