// The usual ways to cut, shard and place a template whose stages are given: where a search that lists shapes
// of pipelines learns what a shape is worth. Other cuts and placements are for climbs and walks.
#pragma once

#include <vector>

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

struct UsualWays {
  double kept = 1.2;              // values beyond this multiple of the best are not worked out
  bool choose_recompute = false;  // stages compute again where memory asks for it, else as the template says
  // Also cuts for few microbatches, and replicas together on the nodes that they fill best.
  bool thorough = false;
};

// The best value; infinite when there is no such plan.
double score_usual_ways(Scorer& scorer, const PlanFeatures& offered, PlanTemplate of, const UsualWays& ways);

// Of all stages together, as far as plans may have them.
std::vector<Recompute> uniform_recompute(const PlanFeatures& offered);

}  // namespace sailor::native
