#include "planner/simulator/cost.h"

namespace sailor {
namespace {

constexpr double kSecondsPerHour = 3600;

// The snapshot's price for that zone, else the catalog's.
double usd_per_gpu_hour(const PlanningContext& context, const std::string& gpu_type,
                        const std::string& zone) {
  const auto& prices = context.snapshot.usd_per_hour;
  if (const auto type = prices.find(gpu_type); type != prices.end())
    if (const auto price = type->second.find(zone); price != type->second.end()) return price->second;
  return context.catalog.at(gpu_type).usd_per_hour;
}

double egress_usd_per_gb(const Snapshot& snapshot, const std::string& from_zone, const std::string& to_zone) {
  const auto from = snapshot.egress_usd_per_gb.find(from_zone);
  if (from == snapshot.egress_usd_per_gb.end()) return 0;
  const auto to = from->second.find(to_zone);
  return to == from->second.end() ? 0 : to->second;
}

}  // namespace

std::optional<GpuRate> gpu_rate(const PlanningContext& context, Expense expense, const std::string& gpu_type,
                                const std::string& zone) {
  switch (expense) {
    case Expense::cost: {
      const double usd_per_s = usd_per_gpu_hour(context, gpu_type, zone) / kSecondsPerHour;
      return GpuRate{usd_per_s, usd_per_s};
    }
    case Expense::energy:
      if (const auto& power = context.catalog.at(gpu_type).power)
        return GpuRate{power->idle_watts, power->busy_watts};
      return std::nullopt;
  }
  return std::nullopt;
}

double idle_per_s(const PlanningContext& context, Expense expense, const Plan& plan) {
  double sum = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (int group = 0; group < num_groups(plan, pipeline); ++group) {
      const PlanStage& stage = pipeline.stages[static_cast<size_t>(group)];
      const auto rate = gpu_rate(context, expense, stage.gpu_type, stage.zone);
      sum += stage.shape.gpus() * rate.value_or(GpuRate{}).idle_per_s;
    }
  return sum;
}

double traffic_per_gb(const PlanningContext& context, Expense expense, const std::string& from_zone,
                      const std::string& to_zone) {
  return expense == Expense::cost ? egress_usd_per_gb(context.snapshot, from_zone, to_zone) : 0;
}

}  // namespace sailor
