// A layer split with one D in which every replica of every stage has its option: runs of equal replicas in
// the order of the pipelines. Value type.
#pragma once

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
    void append(int option, int replicas);
  };
  std::vector<Stage> stages;  // first to last
};

// Time and charge of a layout, exactly as in the published model.
struct LayoutValue {
  double iteration_s = 0;
  double charge = 0;  // of the expense that the goal tracks
};
LayoutValue evaluate(const StageCosts& costs, const Resources& resources, const Layout& layout, int replicas,
                     double microbatches);

// The parts of that time, by stage: each is the slowest of the stage's replicas or pairs of replicas.
struct StageParts {
  double compute_s = 0;
  double activation_s = 0, gradient_s = 0;  // over the boundary after the stage
  double update_s = 0;
  double sync_s = 0;
};
double iteration_s(const std::vector<StageParts>& stages, double microbatches);

// Is the layout within every counter?
bool within_resources(const Resources& resources, const Layout& layout);

// The unplaced plan: replica j of every stage is in pipeline j.
Plan plan_of(const PlanningContext& context, const Resources& resources, const Layout& layout, int microbatch,
             int replicas);

}  // namespace sailor
