#include "planner/report/prediction_json.h"

namespace sailor {
namespace {

nlohmann::json memory_json(const MemoryBreakdown& m) {
  return {{"weights_bytes", m.weights_bytes},
          {"gradients_bytes", m.gradients_bytes},
          {"optimizer_bytes", m.optimizer_bytes},
          {"master_bytes", m.master_bytes},
          {"activations_bytes", m.activations_bytes},
          {"workspace_bytes", m.workspace_bytes},
          {"communication_bytes", m.communication_bytes},
          {"base_bytes", m.base_bytes},
          {"fragmentation_bytes", m.fragmentation_bytes},
          {"total_bytes", m.total()}};
}

}  // namespace

nlohmann::json prediction_json(const Prediction& p) {
  nlohmann::json stages = nlohmann::json::array();
  for (const StagePrediction& s : p.stages)
    stages.push_back({{"pipeline", s.pipeline},
                      {"stage", s.stage},
                      {"forward_s", s.forward_s},
                      {"backward_s", s.backward_s},
                      {"send_forward_s", s.send_forward_s},
                      {"send_backward_s", s.send_backward_s},
                      {"sync_s", s.sync_s},
                      {"update_s", s.update_s},
                      {"estimated", s.estimated},
                      {"in_flight", s.in_flight},
                      {"busy_fraction", s.busy_fraction},
                      {"memory", memory_json(s.memory)},
                      {"offloaded_bytes", s.memory.offloaded_bytes},
                      {"capacity_bytes", s.capacity_bytes}});
  nlohmann::json out = {{"iteration_s", p.iteration_s},
                        {"iterations_per_s", p.iterations_per_s()},
                        {"pipeline_s", p.pipeline_s},
                        {"sync_s", p.sync_s},
                        {"update_s", p.update_s},
                        {"overhead_s", p.overhead_s},
                        {"peak_memory_bytes", p.peak_memory_bytes()},
                        {"uncertainty", p.uncertainty},
                        {"fits", p.fits},
                        {"stages", std::move(stages)}};
  for (const Expense expense : kExpenses) {
    if (!is_told(expense, p.total(expense) > 0)) continue;
    const ExpenseKind& kind = kind_of(expense);
    out[kind.per_iteration_key] = p.total(expense);
    if (kind.traffic_key == nullptr) continue;
    out[kind.gpus_key] = p.spent[expense].gpus;
    out[kind.traffic_key] = p.spent[expense].traffic;
  }
  return out;
}

nlohmann::json shares_json(const IterationShares& s) {
  return {{"pipeline", s.pipeline}, {"stage", s.stage},          {"compute_s", s.compute_s},
          {"bubble_s", s.bubble_s}, {"p2p_s", s.p2p_s},          {"sync_s", s.sync_s},
          {"update_s", s.update_s}, {"overhead_s", s.overhead_s}};
}

void add_bounds(const PerExpense<std::optional<double>>& bound, nlohmann::json& out) {
  for (const Expense expense : kExpenses)
    if (is_told(expense, bound[expense].has_value())) out[bound_key(expense)] = optional_json(bound[expense]);
}

nlohmann::json optional_json(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace sailor
