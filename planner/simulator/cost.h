// Expenses of GPUs and traffic. Pure.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

// Expense of a GPU per second, while it waits and while it computes (equal for USD).
struct GpuRate {
  double idle_per_s = 0;
  double busy_per_s = 0;

  // For `held_s` in total, of which it computes for `busy_s`.
  double spent(double held_s, double busy_s) const {
    return idle_per_s * held_s + (busy_per_s - idle_per_s) * busy_s;
  }
};
inline GpuRate operator*(int gpus, GpuRate of) {
  return {gpus * of.idle_per_s, gpus * of.busy_per_s};
}

// One GPU of the type in the zone; nothing if unknown.
std::optional<GpuRate> gpu_rate(const PlanningContext& context, Expense expense, const std::string& gpu_type,
                                const std::string& zone);
// All GPUs of a plan while they wait, per second.
double idle_per_s(const PlanningContext& context, Expense expense, const Plan& plan);
// One GB (1e9 bytes) from one zone to another; 0 for pairs that are not in the snapshot.
double traffic_per_gb(const PlanningContext& context, Expense expense, const std::string& from_zone,
                      const std::string& to_zone);

}  // namespace sailor
