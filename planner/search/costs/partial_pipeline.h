// The stages from some layer to the last, as the searches of pipeline templates build them: from the last
// stage backwards. Times are added up as in the published model, for placement classes, so they are lower
// bounds. Value type; points to the stages behind, which must outlive it.
#pragma once

#include <algorithm>

#include "planner/search/costs/pipeline_template.h"
#include "planner/search/costs/stage_tables.h"

namespace sailor {

struct PartialPipeline {
  const PartialPipeline* next = nullptr;  // the stages behind the leading one; null without stages
  int first_layer = 0, end_layer = 0;     // of the leading stage
  int placement = -1;                     // of the leading stage
  int stages = 0;
  double bottleneck_s = 0;    // of all stages but the leading one
  double leading_s = 0;       // of the leading stage; without what the stage before it adds
  double last_message_s = 0;  // activation from the leading stage to the next
  double sum_s = 0;           // of stages and messages
  double update_s = 0, sync_s = 0;
  // Set by searches that track resource limits and money.
  double charge_per_s = 0;       // of all replicas
  double fixed_charge = 0;       // does not grow with time: of computation and of traffic
  const double* used = nullptr;  // by limit, of one replica

  double slowest_s() const { return std::max(bottleneck_s, leading_s); }
  // time that does not repeat per round, without gradients
  double once_s() const { return sum_s + update_s; }

  // Begins a stage of a placement class before `behind`: computes all that does not depend on its length.
  // Returns the sum of times so far; infinite if no link is known.
  double begin(const ClassCosts& costs, int of_class, const PartialPipeline& behind) {
    double activation_s = 0, gradient_s = 0;
    if (behind.stages > 0) {
      activation_s = costs.activation_s(of_class, behind.placement, behind.first_layer);
      gradient_s = costs.gradient_s(of_class, behind.placement, behind.first_layer);
    }
    next = &behind;
    end_layer = behind.first_layer;
    placement = of_class;
    stages = behind.stages + 1;
    // The previously leading stage is now complete: its gradient message is known.
    const double extra_s = (behind.stages == 1 ? 2 : 1) * gradient_s;
    bottleneck_s = std::max(behind.bottleneck_s, behind.leading_s + extra_s);
    last_message_s = activation_s;
    return behind.sum_s + activation_s + extra_s;
  }
  // Sets its first layer and times; `begun_s` is what begin() returned.
  void set_first(const ClassCosts& costs, int first, double begun_s) {
    const double compute_s = costs.compute_s(placement, first, end_layer);
    first_layer = first;
    leading_s = compute_s + last_message_s;
    sum_s = begun_s + compute_s;
  }
  void set_update_and_sync(const ClassCosts& costs, const StageSync& sync) {
    update_s = std::max(next->update_s, costs.update_s(placement, first_layer));
    sync_s = std::max(next->sync_s, sync.seconds(placement, first_layer, end_layer));
  }
  // When all layers are in stages: with more than three stages, the first pays for its activation twice.
  void complete() {
    if (stages <= 3) return;
    leading_s += last_message_s;
    sum_s += last_message_s;
  }
  // For complete pipelines; with lower bounds on the slowest stage and the longest gradient reduction.
  double iteration_s(double rounds, double least_slowest_s = 0, double least_sync_s = 0) const {
    return rounds * std::max(least_slowest_s, slowest_s()) + once_s() + std::max(least_sync_s, sync_s);
  }
  std::vector<PipelineTemplate::Stage> path() const {
    std::vector<PipelineTemplate::Stage> path;
    for (const PartialPipeline* l = this; l->stages > 0; l = l->next)
      path.push_back({l->first_layer, l->end_layer, l->placement});
    return path;
  }
};

}  // namespace sailor
