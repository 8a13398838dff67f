// What a complete pipeline template costs at least when traffic between zones has a price and no zone holds
// it all: every stage is spread over zones, and all rings cross between them; or each is in one zone, not all
// in the same, and every pipeline sends its microbatches across; or some are spread and the others in one
// zone, and then the rings of those cross, and so many pipelines as have to leave the zone with them
// (egress_bound.h). Pure.
#pragma once

#include <vector>

#include "planner/search/bounds/egress_bound.h"
#include "planner/search/dynamic_program/label_store.h"

namespace sailor {

struct EgressCharge {
  double iteration_s = 0;
  double usd = 0;
};

// The ways that there are: every plan of the pipeline template takes and costs no less than one of them.
// `label`: the first stage, with all others behind it; `without_sync_s`: an iteration but for its sums of
// gradients; `usd_per_s`: what the GPUs cost; `transfer_usd`: what traffic costs, whatever the way.
std::vector<EgressCharge> egress_charges(const TemplateProblem& problem, const EgressBound& egress,
                                         const Label& label, double without_sync_s, double usd_per_s,
                                         double transfer_usd);

}  // namespace sailor
