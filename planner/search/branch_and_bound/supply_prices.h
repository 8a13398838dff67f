// Prices of supplies that maximize the bound of priced cuts (priced_cuts.h), by the volume algorithm:
// subgradient steps along an average of uses, because equal supplies are used in turn, starting from the best
// prices so far. Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/branch_and_bound/priced_cuts.h"

namespace sailor {

constexpr double kProven = 1e-4;  // relative precision that suffices

struct SupplyPrices {
  std::vector<double> money;  // price x GPUs of every supply, seconds
  std::vector<double> use;    // fraction of every supply; averaged over cuts at prices near these
};

// Prices of one GPU, by supply.
std::vector<double> prices_per_gpu(const std::vector<double>& money, const PricedCuts& cuts);

struct PricedSum {
  double seconds = 0;  // sum of stages less the money; infinite if layers cannot be covered
  int64_t cuts = 0;    // number of priced cuts
};

// The sum at the best prices of a few steps, which are stored in `prices`; stops at `enough`.
PricedSum raise_prices(SupplyPrices& prices, PricedCuts& cuts, double enough);

}  // namespace sailor
