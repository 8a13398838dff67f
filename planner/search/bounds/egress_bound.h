// A lower bound on the cost of traffic between zones if no zone holds all of the plan.
//
// Either every stage is spread over zones, and the ring of each crosses between zones at least twice. Or some
// stage is entirely in one zone, and part of another stage is not: every pipeline in which those two stages
// are in different zones sends its microbatches between zones. What a zone can hold is given by the resource
// limits (resource_limits.h). Holds for every assignment of a pipeline template; 0 if one zone suffices.
// Immutable once built.
#pragma once

#include <string>
#include <vector>

#include "planner/search/costs/class_costs.h"

namespace sailor {

class EgressBound {
 public:
  // Uses the current state of `costs` and `limits`; keeps no reference to the limits.
  EgressBound(const ClassCosts& costs, const std::vector<ResourceLimit>& limits);

  // Are there several zones, and does traffic between any two of them cost money?
  bool matters() const { return matters_; }

  // The prices of one D.
  struct Prices {
    double replicas = 1;
    double rings_charge = 0;     // of all stages, if all are spread; infinite if none can be
    double messages_charge = 0;  // of all pipelines, over one boundary
  };
  Prices prices(int replicas, double microbatches) const;

  // For pipelines that each use at least the sum of both arrays of the first `limits` limits. Charge per
  // iteration.
  double charge(const Prices& prices, const double* used, const double* more, size_t limits) const;

 private:
  const StageCosts& costs_;
  bool matters_ = false;
  size_t zones_ = 0;
  std::vector<double> held_;                // [zone][limit]: capacity of the zone's GPUs
  std::vector<std::pair<int, int>> pairs_;  // options in two zones of one region, one for each order
  double message_charge_ = 0;               // of one microbatch and both directions
};

}  // namespace sailor
