#include "planner/explain/explanation.h"

namespace sailor {

Explanation explain(const PlanningContext& context, const PlanOptions& options, const Candidate& chosen,
                    bool given, double time_limit_s) {
  Explanation out;
  out.chosen = chosen;
  out.given = given;
  out.shares = iteration_shares(context.framework, chosen.plan, chosen.prediction, options.cost_model);
  out.what_ifs = what_if(context, options, chosen, given, time_limit_s);
  out.binding = binding_constraints(context, options.cost_model, chosen, out.what_ifs);
  return out;
}

}  // namespace sailor
