#include "planner/simulator/simulate.h"

#include <algorithm>

#include "planner/simulator/native_model.h"
#include "planner/simulator/published_model.h"
#include "planner/spec/error.h"

namespace sailor {

const char* to_string(CostModel model) {
  return model == CostModel::native ? "native" : "published";
}

PlanningContext in_precision(const PlanningContext& context, Precision precision) {
  const bool same = precision == context.precision || !context.profiles.fallback;
  return {context.job,       context.snapshot,
          context.catalog,   same ? context.profiles : *context.profiles.fallback,
          context.framework, precision};
}

PlanningContext under(const Plan& plan, const PlanningContext& context) {
  return in_precision(context, plan.precision.value_or(context.precision));
}

CostModel parse_cost_model(const std::string& text) {
  if (text == "native") return CostModel::native;
  if (text == "published") return CostModel::published;
  throw InputError("unknown cost model \"" + text + "\" (native or published)");
}

double Prediction::estimated_share() const {
  double all_s = 0, estimated_s = 0;
  for (const StagePrediction& stage : stages) {
    const double busy_s = stage.forward_s + stage.backward_s;
    all_s += busy_s;
    if (stage.estimated) estimated_s += busy_s;
  }
  return all_s > 0 ? estimated_s / all_s : 0;
}

int64_t Prediction::peak_memory_bytes() const {
  int64_t peak = 0;
  for (const StagePrediction& stage : stages) peak = std::max(peak, stage.memory.total());
  return peak;
}

Prediction simulate(const PlanningContext& context, const Plan& plan, CostModel model) {
  return model == CostModel::native ? native::simulate(context, plan)
                                    : published::simulate(under(plan, context), plan);
}

}  // namespace sailor
