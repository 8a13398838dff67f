// A cut of the layers into stages of placement classes, and what it is searched for. Value types.
#pragma once

#include <vector>

#include "planner/search/costs/class_costs.h"
#include "planner/search/problem/goal.h"

namespace sailor {

// A cut with placement classes; which replica runs where is open.
struct PipelineTemplate {
  struct Stage {
    int first_layer = 0;
    int end_layer = 0;
    int placement = 0;
  };
  std::vector<Stage> stages;  // first to last
  // No plan of this form is faster or cheaper; exact when all placement classes are pure (and the model is a
  // sum).
  double iteration_s = 0;
  double usd = 0;
};

class BoundTables;

struct TemplateProblem {
  ClassCosts& costs;
  const std::vector<ResourceLimit>& limits;
  int replicas = 1;
  double microbatches = 1;  // per pipeline, of the busiest
  double overhead_s = 0;
  Goal goal;
  bool dominance = true;
  bool pure_dominance =
      false;  // only labels of pure stages dominate: keeps every way to assign a pipeline template
  bool bounding = true;
  int max_stages = 1 << 20;
  size_t beam =
      0;  // follow only so many labels of a layer and leading placement class: quick, not complete; 0: all
  size_t max_labels = 1000000;
  BoundTables* tables = nullptr;  // of the same costs and limits, where several problems share them
};

}  // namespace sailor
