// What a plan pays at least for traffic between zones, when no zone holds all of it.
//
// Either every stage is spread over zones; then the ring of each crosses between zones twice at least. Or
// some stage is all in one zone, and so much of some other stage is not: every pipeline in which those two
// are in different zones sends its microbatches from zone to zone somewhere between them. What a zone holds
// is known by the limits on resources (resource_limits.h). Holds for every assignment of a pipeline template;
// 0 where one zone suffices. Immutable once built.
#pragma once

#include <string>
#include <vector>

#include "planner/search/costs/class_costs.h"

namespace sailor {

class EgressBound {
 public:
  // Only of `costs` and `limits` as they are now; keeps no reference to the limits.
  EgressBound(const ClassCosts& costs, const std::vector<ResourceLimit>& limits);

  // Are there two zones to choose from, and does traffic between any two of them cost money?
  bool matters() const { return matters_; }

  // The prices of one D.
  struct Prices {
    double replicas = 1;
    double rings_charge = 0;     // of all stages, when all are spread; infinite where none can be
    double messages_charge = 0;  // of all pipelines, over one boundary
  };
  Prices prices(int replicas, double microbatches) const;

  // Of pipelines of which each one uses so much of every one of the first `limits` limits, at least: the sum
  // of both arrays. Charge per iteration.
  double charge(const Prices& prices, const double* used, const double* more, size_t limits) const;

 private:
  const StageCosts& costs_;
  bool matters_ = false;
  size_t zones_ = 0;
  std::vector<double> held_;                // [zone][limit]: of all that a zone's GPUs count
  std::vector<std::pair<int, int>> pairs_;  // options in two zones of one region, one for each order
  double message_charge_ = 0;               // of one microbatch and both directions
};

}  // namespace sailor
