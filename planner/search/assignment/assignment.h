// From a pipeline template to a layout: the option of every replica, and the order of the pipelines. Pure,
// deterministic.
//
// Small problems are solved exactly (exact_assignment.cpp: pipeline by pipeline, dynamic programming over the
// used GPUs); large ones by rules that keep pipelines inside one zone and the replicas of a stage in few
// zones (greedy_assignment.cpp).
#pragma once

#include <optional>

#include "planner/search/costs/layout.h"
#include "planner/search/costs/pipeline_template.h"

namespace sailor {

struct AssignmentProblem {
  ClassCosts& costs;
  int replicas = 1;
  double microbatches = 1;
  Goal goal;
};

struct Assignment {
  Layout layout;
  LayoutValue value;
};

// The best layout found that meets the limits and is better than `threshold`; nothing if there is none.
// `exactly`: it is the optimum.
std::optional<Assignment> assign(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                 double threshold, bool* exactly);

// So few GPUs that every pipeline template is assigned exactly, including the order of replicas.
bool is_small(const Resources& resources);

std::optional<Assignment> assign_exactly(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                         double threshold);
std::optional<Assignment> assign_greedily(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                          double threshold);

// Options that are possible in each stage of the pipeline template, by stage; the slowest first.
std::vector<std::vector<int>> serving_options(const AssignmentProblem& problem,
                                              const PipelineTemplate& pipeline);

}  // namespace sailor
