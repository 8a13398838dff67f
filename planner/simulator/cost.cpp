#include "planner/simulator/cost.h"

#include <algorithm>
#include <map>

namespace sailor {
namespace {

constexpr double kSecondsPerHour = 3600;

// The snapshot's price for that zone, else the catalog's.
std::optional<double> list_price(const PlanningContext& context, const std::string& gpu_type,
                                 const std::string& zone, bool spot) {
  const auto& prices = spot ? context.snapshot.spot_usd_per_hour : context.snapshot.usd_per_hour;
  if (const auto type = prices.find(gpu_type); type != prices.end())
    if (const auto price = type->second.find(zone); price != type->second.end()) return price->second;
  const GpuType& type = context.catalog.at(gpu_type);
  return spot ? type.spot_usd_per_hour : type.usd_per_hour;
}

bool has_unit_price(const PlanningContext& context, const SnapshotNode& node) {
  return context.snapshot.usd_per_unit_hour && node.billing_units > 0;
}

std::optional<GpuRate> constant_rate(std::optional<double> usd_per_hour) {
  if (!usd_per_hour) return std::nullopt;
  return GpuRate{*usd_per_hour / kSecondsPerHour, *usd_per_hour / kSecondsPerHour};
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
    case Expense::cost:
      return constant_rate(list_price(context, gpu_type, zone, false));
    case Expense::energy:
      if (const auto& power = context.catalog.at(gpu_type).power)
        return GpuRate{power->idle_watts, power->busy_watts};
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> usd_per_gpu_hour(const PlanningContext& context, const SnapshotNode& node) {
  if (has_unit_price(context, node))
    return *context.snapshot.usd_per_unit_hour * node.billing_units / std::max(1, node.gpus);
  return list_price(context, node.gpu_type, node.zone, node.spot);
}

std::optional<GpuRate> least_gpu_rate(const PlanningContext& context, Expense expense,
                                      const std::string& gpu_type, const std::string& zone) {
  std::optional<GpuRate> least;
  for (const SnapshotNode& node : context.snapshot.nodes) {
    if (expense != Expense::cost || node.gpu_type != gpu_type || node.zone != zone) continue;
    const std::optional<GpuRate> here = constant_rate(usd_per_gpu_hour(context, node));
    if (!here) return std::nullopt;
    if (!least || here->idle_per_s < least->idle_per_s) least = here;
  }
  return least ? least : gpu_rate(context, expense, gpu_type, zone);
}

NodeBill bill_of(const PlanningContext& context, const SnapshotNode& node) {
  const bool by_units = has_unit_price(context, node);
  return {usd_per_gpu_hour(context, node).value_or(0) / kSecondsPerHour, node.shared ? 0 : node.gpus,
          node.spot && !by_units, by_units};
}

PlanBill bill_of(const PlanningContext& context, const Plan& plan) {
  std::map<std::pair<std::string, std::string>, const SnapshotNode*> nodes;  // by name and type
  for (const SnapshotNode& node : context.snapshot.nodes) nodes[{node.name, node.gpu_type}] = &node;
  PlanBill bill;
  std::map<const SnapshotNode*, int> used;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (int group = 0; group < num_groups(plan, pipeline); ++group) {
      const PlanStage& stage = pipeline.stages[static_cast<size_t>(group)];
      const int gpus = stage.shape.gpus();
      bill.used_gpus += gpus;
      if (const auto node = nodes.find({stage.node, stage.gpu_type}); node != nodes.end()) {
        used[node->second] += gpus;
        continue;
      }
      const auto rate = least_gpu_rate(context, Expense::cost, stage.gpu_type, stage.zone);
      bill.paid_gpus += gpus;
      bill.on_demand = true;
      bill.usd_per_s += gpus * rate.value_or(GpuRate{}).idle_per_s;
    }
  for (const auto& [node, gpus] : used) {
    const NodeBill of_node = bill_of(context, *node);
    bill.paid_gpus += of_node.paid(gpus);
    bill.whole_nodes += of_node.whole_gpus > 0;
    (of_node.by_units ? bill.by_units : of_node.spot ? bill.spot : bill.on_demand) = true;
    bill.usd_per_s += of_node.paid(gpus) * of_node.usd_per_gpu_s;
  }
  return bill;
}

double idle_per_s(const PlanningContext& context, Expense expense, const Plan& plan) {
  if (expense == Expense::cost) return bill_of(context, plan).usd_per_s;
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
