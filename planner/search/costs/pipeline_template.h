// A layer split with placement classes for its stages, and the search problem for it. Value types.
#pragma once

#include <vector>

#include "planner/search/costs/class_costs.h"
#include "planner/search/problem/goal.h"

namespace sailor {

// The location of replicas is open.
struct PipelineTemplate {
  struct Stage {
    int first_layer = 0;
    int end_layer = 0;
    int placement = 0;
  };
  std::vector<Stage> stages;  // first to last
  // A lower bound for plans of this form; exact if all placement classes are pure.
  double iteration_s = 0;
  double charge = 0;  // of the expense that the goal tracks
};

class BoundTables;

struct TemplateProblem {
  ClassCosts& costs;
  const std::vector<ResourceLimit>& limits;
  BoundTables& tables;  // of these costs and limits; several problems share them
  int replicas = 1;
  double microbatches = 1;  // per pipeline, of the busiest
  Goal goal;
  bool dominance = true;
  // Labels are only dominated by labels of pure stages: keeps every way to assign GPUs to a template.
  bool pure_dominance = false;
  bool bounding = true;
  int max_stages = 1 << 20;
};

}  // namespace sailor
