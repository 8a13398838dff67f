#include "planner/simulator/simulate.h"

#include <algorithm>

#include "planner/simulator/native_model.h"
#include "planner/simulator/published_model.h"
#include "planner/spec/error.h"

namespace sailor {

const char* to_string(CostModel model) {
  return model == CostModel::native ? "native" : "published";
}

CostModel parse_cost_model(const std::string& text) {
  if (text == "native") return CostModel::native;
  if (text == "published") return CostModel::published;
  throw InputError("unknown cost model \"" + text + "\" (native or published)");
}

int64_t Prediction::peak_memory_bytes() const {
  int64_t peak = 0;
  for (const StagePrediction& stage : stages) peak = std::max(peak, stage.memory.total());
  return peak;
}

Prediction simulate(const PlanningContext& context, const Plan& plan, CostModel model) {
  return model == CostModel::native ? native::simulate(context, plan) : published::simulate(context, plan);
}

}  // namespace sailor
