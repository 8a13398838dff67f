// Lower bounds that hold for every plan under the native cost model, mixed, interleaved and however placed.
//
// Plans are told apart by what they have in common (cells): microbatch size, number of pipelines D, sharded
// optimizer, interleaving, and whether they stay in one zone. A time T is refuted for a cell when GPUs can be
// given prices, 1 for all of them together, such that D pipelines with M microbatches that all end by T cost
// more than 1: c(m), the least price of a pipeline with m of them (pipeline_prices.h), grows with m, so the
// lower convex hull of c where it is known, at M / D, is a bound of the mean price. With several types prices
// follow what the cheapest pipelines use too much of.
//
// Cheaper bounds come first (cell_floors.h, work_limits.h): what all layers need where GPUs have the price of
// their speed; where several zones or nodes are used, either every pipeline sends its messages across, or
// some layers' gradients are summed across; and what their network cards let each of them compute. The bound
// is the largest T that is refuted for all cells, by bisection up to a known plan's. Effort is counted in
// steps; where it ends, cells keep what they have. Messages of interleaved pipelines do not count further,
// and neither does it that different stages of a node share its cards.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/space.h"
#include "planner/search/problem/deadline.h"

namespace sailor::native {

struct Bound {
  double iteration_s = 0;
  double charge = 0;
};

// Plans that have these in common.
struct PlanKind {
  int microbatch = 1;
  int pipelines = 1;
  bool zero1 = false;
  bool interleave = false;
};

// Of all plans with what is offered; infinite when no microbatch size has times, 0 when the time is over
// before anything is known. `known_s`: an iteration of some plan, or infinite.
Bound least_possible(const Space& space, const PlanFeatures& offered, double known_s, Deadline& deadline);
// Of plans of one kind; infinite when there are none. For tests.
double least_possible(const Space& space, const PlanFeatures& offered, const PlanKind& kind);

}  // namespace sailor::native
