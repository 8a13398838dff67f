// The Pareto front of throughput and cost, for people (a table, a picture) and for programs.
#pragma once

#include <string>

#include "planner/search/pareto.h"

namespace sailor {

// A row per point, from the cheapest to the fastest; ends in a newline, at most ~110 columns wide.
std::string pareto_table(const PlanningContext& context, const ParetoFront& front);
// `"sailor_pareto": 1`; the schema is in etc/doc/plan-result.md.
std::string pareto_json(const PlanningContext& context, const ParetoFront& front);
// Tokens per second over USD per iteration (SVG), a step from point to point.
std::string pareto_svg(const PlanningContext& context, const ParetoFront& front);

}  // namespace sailor
