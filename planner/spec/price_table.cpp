#include "planner/spec/price_table.h"

#include <fmt/format.h>

namespace sailor {

PriceTable read_price_table(const Field& field) {
  PriceTable table;
  for (const auto& [outer, row] : field.entries()) {
    for (const auto& [inner, price] : row.entries()) table[outer][inner] = price.usd();
  }
  return table;
}

double read_unit_price(const Field& field) {
  return MapField(field, {"usd_per_unit_hour"}).required("usd_per_unit_hour").usd();
}

std::string yaml_unit_price(std::optional<double> usd_per_unit_hour) {
  return usd_per_unit_hour ? fmt::format("billing: {{usd_per_unit_hour: {}}}\n", *usd_per_unit_hour) : "";
}

const std::vector<std::string>& price_names() {
  static const std::vector<std::string> names = {"on-demand", "spot"};
  return names;
}

}  // namespace sailor
