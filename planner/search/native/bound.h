// Lower bounds on every plan under the native cost model: mixed, interleaved and with any placement.
//
// Plans are divided into cells by microbatch size, numbers of pipelines D that are alike, sharded optimizer,
// interleaving, and whether they stay in one zone. A time T is refuted for a cell if there are prices of
// GPUs, 1 for all of them together, at which D pipelines with M microbatches in total that all end by T cost
// more than 1. c(m), the least price of a pipeline with m microbatches (pipeline_prices.h), grows with m, so
// the lower convex hull of its known values, at M / D, bounds the mean price; the sum is piecewise linear in
// D. With several types, prices follow the overuse of the cheapest pipelines.
//
// Cheaper bounds come first (cell_floors.h, work_limits.h): the needs of all layers if GPUs have the price of
// their speed; if several zones or nodes are used, either every pipeline sends its messages across, or the
// gradients of some layers are reduced across; and the computation that their network cards allow each of
// them. The bound is the largest T that is refuted for all cells, by bisection up to a known plan's. Effort
// is counted in steps; where it ends, cells keep their current bounds. Messages of interleaved pipelines are
// not bounded further, nor is the sharing of cards by different stages of a node.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/space.h"
#include "planner/search/problem/deadline.h"

namespace sailor::native {

struct Bound {
  double iteration_s = 0;
  double charge = 0;
};

// A kind of plans: those with these properties.
struct PlanKind {
  int microbatch = 1;  // or any_microbatch(): pipelines have microbatches of unlike sizes
  int pipelines = 1;
  Zero zero = Zero::none;
  bool interleave = false;
};

// Bound for all plans with the offered features; infinite if no microbatch size has times, 0 if the time is
// over before anything is known. `known_s`: an iteration of some plan, or infinite; no
// bound above it is looked for.
Bound least_possible(const Space& space, const PlanFeatures& offered, double known_s, Deadline& deadline);
// Bound for one kind of plans; infinite if there are none. For tests.
double least_possible(const Space& space, const PlanFeatures& offered, const PlanKind& kind);

}  // namespace sailor::native
