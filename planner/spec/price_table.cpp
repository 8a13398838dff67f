#include "planner/spec/price_table.h"

namespace sailor {

PriceTable read_price_table(const Field& field) {
  PriceTable table;
  for (const auto& [outer, row] : field.entries()) {
    for (const auto& [inner, price] : row.entries()) table[outer][inner] = price.usd();
  }
  return table;
}

}  // namespace sailor
