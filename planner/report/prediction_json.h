// A prediction as JSON; the keys are in etc/doc/plan-result.md. Internal to planner/report.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "planner/simulator/iteration_shares.h"
#include "planner/simulator/prediction.h"

namespace sailor {

nlohmann::json prediction_json(const Prediction& prediction);
nlohmann::json shares_json(const IterationShares& shares);
nlohmann::json optional_json(const std::optional<double>& value);  // null if absent
// `bound_usd_per_iteration` and the like; null if nothing is proven.
void add_bounds(const PerExpense<std::optional<double>>& bound, nlohmann::json& out);

}  // namespace sailor
