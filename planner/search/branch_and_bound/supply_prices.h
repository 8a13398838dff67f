// Prices of supplies at which priced cuts bound most (priced_cuts.h), by the volume algorithm: subgradient
// steps along an average of uses, because equal supplies are used in turns, and from the best prices so far.
// Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/branch_and_bound/priced_cuts.h"

namespace sailor {

constexpr double kProven = 1e-4;  // relative: no need to know better

struct SupplyPrices {
  std::vector<double> money;  // price x GPUs of every supply, seconds
  std::vector<double> use;    // of every supply, of 1; averaged over cuts at prices near these
};

// Of one GPU, by supply.
std::vector<double> prices_per_gpu(const std::vector<double>& money, const PricedCuts& cuts);

struct PricedSum {
  double seconds = 0;  // of stages, less the money; infinite when layers cannot be covered
  int64_t cuts = 0;    // that were priced
};

// The sum at the best prices of a few steps, which are left in `prices`; `enough` of it is enough.
PricedSum raise_prices(SupplyPrices& prices, PricedCuts& cuts, double enough);

}  // namespace sailor
