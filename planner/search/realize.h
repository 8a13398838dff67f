// From a skeleton to a layout: which replica runs on which option, and in which order the pipelines stand.
// Pure, deterministic.
//
// Small problems are solved exactly under the published model (realize_columns.cpp: pipelines one by one,
// dynamic programming over what has been used). Large ones, and those of the native model, whose sums are
// estimates, by rules that keep pipelines inside one zone and sums over few seams (realize_zones.cpp).
#pragma once

#include <optional>

#include "planner/search/layout.h"
#include "planner/search/skeleton_search.h"

namespace sailor {

struct RealizeProblem {
  ModeCosts& costs;
  int replicas = 1;
  double microbatches = 1;
  double overhead_s = 0;
  Goal goal;
};

struct Realized {
  Layout layout;
  LayoutValue value;
};

// The best layout found that meets the limits and is better than `threshold`; nothing when there is none.
// `exactly`: it is the best that there is.
std::optional<Realized> realize(const RealizeProblem& problem, const Skeleton& skeleton, double threshold,
                                bool* exactly);

// So few GPUs that every skeleton is realized exactly, whatever the order of replicas.
bool is_small(const Resources& resources);

std::optional<Realized> realize_by_columns(const RealizeProblem& problem, const Skeleton& skeleton,
                                           double threshold);
std::optional<Realized> realize_by_zones(const RealizeProblem& problem, const Skeleton& skeleton,
                                         double threshold);

// Options that may serve in each stage of the skeleton, by stage; the slowest first.
std::vector<std::vector<int>> serving_options(const RealizeProblem& problem, const Skeleton& skeleton);

}  // namespace sailor
