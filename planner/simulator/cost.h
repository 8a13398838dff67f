// Expenses of GPUs and traffic. Pure.
#pragma once

#include <optional>
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

// One GPU of the type in the zone, on demand; nothing if unknown.
std::optional<GpuRate> gpu_rate(const PlanningContext& context, Expense expense, const std::string& gpu_type,
                                const std::string& zone);
// The same, but the cheapest of the snapshot's nodes if there are any; nothing if one of them has no price.
std::optional<GpuRate> least_gpu_rate(const PlanningContext& context, Expense expense,
                                      const std::string& gpu_type, const std::string& zone);

// What a node costs that a job takes.
struct NodeBill {
  double usd_per_gpu_s = 0;             // 0 if unknown
  int whole_gpus = 0;                   // all of the node are paid; 0 = those of the plan
  bool spot = false, by_units = false;  // else on demand

  bool operator==(const NodeBill&) const = default;
  // With this many GPUs of a plan, more than 0.
  int paid(int used) const { return whole_gpus > 0 ? whole_gpus : used; }
};
// Price of one GPU of a node, or its part of the node's billing units, per hour; nothing if unknown.
std::optional<double> usd_per_gpu_hour(const PlanningContext& context, const SnapshotNode& node);
NodeBill bill_of(const PlanningContext& context, const SnapshotNode& node);

// What a plan costs while it holds its nodes. GPUs without a node in the snapshot are paid by themselves.
struct PlanBill {
  int used_gpus = 0, paid_gpus = 0;
  int whole_nodes = 0;
  bool spot = false, on_demand = false, by_units = false;  // is any GPU paid so?
  double usd_per_s = 0;
};
PlanBill bill_of(const PlanningContext& context, const Plan& plan);
// A plan while it waits, per second: its bill, or all of its GPUs.
double idle_per_s(const PlanningContext& context, Expense expense, const Plan& plan);
// One GB (1e9 bytes) from one zone to another; 0 for pairs that are not in the snapshot.
double traffic_per_gb(const PlanningContext& context, Expense expense, const std::string& from_zone,
                      const std::string& to_zone);

}  // namespace sailor
