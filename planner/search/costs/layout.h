// A cut with one D in which every replica of every stage has its option: runs of equal replicas in the order
// of the pipelines. Value type.
#pragma once

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "planner/search/costs/stage_costs.h"

namespace sailor {

struct Layout {
  struct Run {
    int option = 0;
    int replicas = 0;
  };
  struct Stage {
    int first_layer = 0;
    int end_layer = 0;
    std::vector<Run> runs;

    int option_of(int replica) const;
  };
  std::vector<Stage> stages;  // first to last
};

// What a layout takes as the cost model of StageCosts adds it up: exactly under the published model; under
// the native one, whose timeline is no sum, an estimate. Infinite where the costs lack an option of the
// layout.
struct LayoutValue {
  double iteration_s = 0;
  double usd = 0;
};
LayoutValue evaluate(const StageCosts& costs, const Resources& resources, const Layout& layout, int replicas,
                     double microbatches, double overhead_s);

// What that sum is made of, by stage: each the slowest of the stage's replicas or pairs of them.
struct StageParts {
  double compute_s = 0;
  double activation_s = 0, gradient_s = 0;  // over the boundary behind the stage
  double update_s = 0;
  double sync_s = 0;
};
// Native: a stage with n - 1 stages behind it begins a microbatch when the n-th before it is back, so after
// the first one there are floor((microbatches - 1) / n) more trips of `trip_s` to the last stage and back,
// one after the other. As long as a bottleneck of this many seconds takes for all but the first microbatch.
inline double round_trip_bottleneck_s(double trip_s, int stages, double microbatches) {
  return microbatches > stages ? trip_s * std::floor((microbatches - 1) / stages) / (microbatches - 1) : 0;
}
double iteration_s(CostModel model, const std::vector<StageParts>& stages, double microbatches,
                   double overhead_s);

// The layout of a plan whose pipelines have one cut; nothing for others, and where an option is not there.
std::optional<Layout> layout_of(const Resources& resources, const Plan& plan);

// Does every counter suffice?
bool within_resources(const Resources& resources, const Layout& layout);

// The unplaced plan: replica j of every stage is in pipeline j.
Plan plan_of(const PlanningContext& context, const Resources& resources, const Layout& layout, int microbatch,
             int replicas);

}  // namespace sailor
