#include "planner/search/compose.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "planner/search/layout.h"
#include "planner/search/pipeline_shapes.h"
#include "planner/search/shape_knapsack.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Gives every pipeline what it manages in the target time, then takes the surplus from whoever ends last.
Plan assemble(const PlanningContext& context, const Resources& resources, const std::vector<Shape>& shapes,
              Selection selection, const StageCosts& costs, double target_s, int64_t total) {
  const int microbatch = costs.microbatch();
  std::sort(selection.begin(), selection.end());
  // The least target in which this selection manages it: little surplus is left to take away one by one.
  const auto managed = [&](double t) {
    int64_t sum = 0;
    for (int s : selection) sum += std::min<int64_t>(total, shapes[s].microbatches_in(t));
    return sum;
  };
  double low = 0;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + target_s) / 2;
    (managed(middle) >= total ? target_s : low) = middle;
  }
  std::vector<int> share;
  int64_t sum = 0;
  for (int s : selection) {
    share.push_back(static_cast<int>(std::min<int64_t>(total, shapes[s].microbatches_in(target_s))));
    sum += share.back();
  }
  for (; sum > total; --sum) {
    size_t latest = 0;
    double latest_s = -1;
    for (size_t p = 0; p < selection.size(); ++p)
      if (share[p] > 0 && shapes[selection[p]].time_s(share[p]) > latest_s) {
        latest = p;
        latest_s = shapes[selection[p]].time_s(share[p]);
      }
    --share[latest];
  }
  Plan plan;
  plan.zero1 = costs.sharded();
  plan.model = context.job.model.name;
  plan.global_batch = context.job.training.global_batch;
  plan.microbatch = microbatch;
  for (size_t p = 0; p < selection.size(); ++p) {
    if (share[p] == 0) continue;
    PlanPipeline pipeline =
        plan_of(context, resources, shapes[selection[p]].cut, microbatch, 1).pipelines.front();
    pipeline.microbatches = share[p];
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

// The selection that ends first, as far as sums tell.
std::optional<Plan> fastest_selection(const PlanningContext& context, const Resources& resources,
                                      const std::vector<Shape>& shapes, const StageCosts& costs,
                                      int64_t total, const std::function<bool()>& expired) {
  const ShapeKnapsack knapsack(shapes, resources.capacity);
  double high = kNever;
  for (const Shape& shape : shapes) high = std::min(high, shape.time_s(static_cast<int>(total)));
  double low = 0;
  std::optional<Selection> best = knapsack.fill(high, total);
  for (int step = 0; step < 14 && !expired(); ++step) {
    const double middle = (low + high) / 2;
    if (std::optional<Selection> selection = knapsack.fill(middle, total)) {
      best = std::move(selection);
      high = middle;
    } else {
      low = middle;
    }
  }
  if (!best) return std::nullopt;
  return assemble(context, resources, shapes, *best, costs, high, total);
}

}  // namespace

std::vector<Plan> composed_plans(const PlanningContext& context, const Resources& resources,
                                 const StageCosts& costs, const std::function<bool()>& expired) {
  const int64_t total = num_microbatches(context.job.training.global_batch, costs.microbatch());
  if (total > 1000000) return {};
  ModeCosts modes(costs, resources, pure_modes(costs, resources), Replicas::any);
  if (modes.modes().empty()) return {};
  std::vector<Plan> plans;
  // A pipeline's share decides between short and fast shapes; the right one is not known before, so a few are
  // tried.
  for (int pipelines : {2, 4, 16}) {
    if (expired()) break;
    const double share = std::max(1.0, static_cast<double>(total) / pipelines);
    const ShapeTable table = pipeline_shapes(resources, modes, share, pipelines, expired);
    // Sums of gradients are not in the selection; how long they may take is tried instead.
    std::set<int, std::greater<int>> steps;
    for (const auto& [key, shape] : table) steps.insert(key.second);
    for (int step : steps) {
      if (expired()) break;
      const std::vector<Shape> shapes = shapes_up_to(table, step, resources, costs);
      if (auto plan = fastest_selection(context, resources, shapes, costs, total, expired))
        plans.push_back(std::move(*plan));
    }
  }
  return plans;
}

}  // namespace sailor
