#include "planner/simulator/cost.h"

namespace sailor {

double usd_per_gpu_hour(const PlanningContext& context, const std::string& gpu_type,
                        const std::string& zone) {
  const auto& prices = context.snapshot.usd_per_hour;
  if (const auto type = prices.find(gpu_type); type != prices.end())
    if (const auto price = type->second.find(zone); price != type->second.end()) return price->second;
  return context.catalog.at(gpu_type).usd_per_hour;
}

double usd_per_s(const PlanningContext& context, const Plan& plan) {
  double per_hour = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages)
      per_hour += stage.tp * usd_per_gpu_hour(context, stage.gpu_type, stage.zone);
  return per_hour / 3600.0 / plan.interleave;
}

double egress_usd_per_gb(const Snapshot& snapshot, const std::string& from_zone, const std::string& to_zone) {
  const auto from = snapshot.egress_usd_per_gb.find(from_zone);
  if (from == snapshot.egress_usd_per_gb.end()) return 0;
  const auto to = from->second.find(to_zone);
  return to == from->second.end() ? 0 : to->second;
}

}  // namespace sailor
