// Prices by two names ([GPU type][zone], [from zone][to zone]) as nested YAML maps; shared by snapshot and
// site config. Internal to planner/spec.
#pragma once

#include <map>
#include <string>

#include "planner/spec/field.h"

namespace sailor {

using PriceTable = std::map<std::string, std::map<std::string, double>>;

PriceTable read_price_table(const Field& field);

}  // namespace sailor
