// A cut of the layers into stages of placement classes, and what it is searched for. Value types.
#pragma once

#include <vector>

#include "planner/search/costs/class_costs.h"
#include "planner/search/problem/goal.h"

namespace sailor {

// Which replica runs where is open.
struct PipelineTemplate {
  struct Stage {
    int first_layer = 0;
    int end_layer = 0;
    int placement = 0;
  };
  std::vector<Stage> stages;  // first to last
  // No plan of this form is faster or cheaper; exact when all placement classes are pure.
  double iteration_s = 0;
  double charge = 0;  // of the expense that the goal follows
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
  // Only labels of pure stages dominate others: keeps every way to assign GPUs to a template.
  bool pure_dominance = false;
  bool bounding = true;
  int max_stages = 1 << 20;
};

}  // namespace sailor
