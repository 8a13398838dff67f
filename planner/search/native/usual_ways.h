// The usual ways to split, shard and place a template with given stages, by which a search over shapes judges
// a shape. Climbs and walks try other splits and placements.
#pragma once

#include <vector>

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

struct UsualWays {
  double kept = 1.2;              // values beyond this multiple of the best are not computed exactly
  bool choose_recompute = false;  // stages recompute if memory requires it; else as in the template
  // Also splits for few microbatches, and replicas together on the nodes that they fill best.
  bool thorough = false;
};

// The best value; infinite if there is no such plan.
double score_usual_ways(Scorer& scorer, const PlanFeatures& offered, PlanTemplate of, const UsualWays& ways);

// The same of a template that is cut and shares the batch, in the usual placements.
double score_placed(Scorer& scorer, PlanTemplate& of, const UsualWays& ways);

// For all stages together, as far as plans may use them.
std::vector<Recompute> uniform_recompute(const PlanFeatures& offered);

}  // namespace sailor::native
