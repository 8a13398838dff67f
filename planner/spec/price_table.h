// Prices in YAML, shared by snapshot and site config: by two names ([GPU type][zone], [from zone][to zone])
// as nested maps, and of a unit of Slurm's billing weights. Internal to planner/spec.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/field.h"

namespace sailor {

using PriceTable = std::map<std::string, std::map<std::string, double>>;

PriceTable read_price_table(const Field& field);
// Of `billing: {usd_per_unit_hour: 0.2}`.
double read_unit_price(const Field& field);
std::string yaml_unit_price(std::optional<double> usd_per_unit_hour);
// Values of `price`: on-demand, then spot.
const std::vector<std::string>& price_names();

}  // namespace sailor
