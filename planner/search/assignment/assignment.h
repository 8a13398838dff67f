// From a pipeline template to a layout: which replica runs on which option, and in which order the pipelines
// stand. Pure, deterministic.
//
// Small problems are solved exactly (exact_assignment.cpp: pipelines one by one, dynamic programming over
// what has been used). Large ones by rules that keep pipelines inside one zone and the replicas of a stage in
// few zones (greedy_assignment.cpp).
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

// The best layout found that meets the limits and is better than `threshold`; nothing when there is none.
// `exactly`: it is the best that there is.
std::optional<Assignment> assign(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                 double threshold, bool* exactly);

// So few GPUs that every pipeline template is assigned exactly, whatever the order of replicas.
bool is_small(const Resources& resources);

std::optional<Assignment> assign_exactly(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                         double threshold);
std::optional<Assignment> assign_greedily(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                          double threshold);

// Options that may serve in each stage of the pipeline template, by stage; the slowest first.
std::vector<std::vector<int>> serving_options(const AssignmentProblem& problem,
                                              const PipelineTemplate& pipeline);

}  // namespace sailor
