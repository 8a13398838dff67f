#include "planner/search/branch_and_bound/supply_prices.h"

#include <algorithm>
#include <cmath>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

constexpr int kSubgradients = 3;
constexpr double kNewUse = 0.1;                  // in the average of uses
constexpr double kShorter = 0.7, kLonger = 1.3;  // steps, after one without gain and after one with gain
constexpr double kAmbition = 0.1;    // a step towards so much more than the best sum that is known
constexpr double kNotForSale = 1e9;  // seconds; of supplies without GPUs

}  // namespace

std::vector<double> prices_per_gpu(const std::vector<double>& money, const PricedCuts& cuts) {
  std::vector<double> prices;
  for (size_t s = 0; s < money.size(); ++s)
    prices.push_back(cuts.supplies()[s].gpus > 0 ? money[s] / cuts.supplies()[s].gpus : kNotForSale);
  return prices;
}

PricedSum raise_prices(SupplyPrices& prices, PricedCuts& cuts, double enough) {
  const size_t n = prices.money.size();
  std::vector<double> money = prices.money;
  PricedSum best{-kNever, 0};
  double scale = 1;
  for (int step = 0; step < kSubgradients; ++step) {
    ++best.cuts;
    double sum = cuts.solve(prices_per_gpu(money, cuts));
    if (sum == kNever) return {kNever, best.cuts};
    for (double m : money) sum -= m;
    if (step == 0 && sum < 0) {  // supplies that are free bound more
      ++best.cuts;
      money.assign(n, 0);
      sum = cuts.solve(prices_per_gpu(money, cuts));
    }
    std::vector<double> use = cuts.use_of(cuts.path());
    for (size_t s = 0; s < n; ++s) use[s] /= std::max(1, cuts.supplies()[s].gpus);
    if (prices.use.empty()) prices.use = use;
    for (size_t s = 0; s < n; ++s) prices.use[s] += kNewUse * (use[s] - prices.use[s]);
    if (step == 0 || sum > best.seconds) {
      if (step > 0) scale = std::min(1.0, scale * kLonger);
      best.seconds = sum;
      prices.money = money;
    } else {
      scale *= kShorter;
    }
    if (best.seconds >= enough) break;
    double norm = 0;
    std::vector<double> overused(n, 0);
    for (size_t s = 0; s < n; ++s) {
      overused[s] = prices.use[s] - 1;
      if (overused[s] < 0 && prices.money[s] <= 0) overused[s] = 0;
      norm += overused[s] * overused[s];
    }
    if (norm < 1e-12) break;
    const double target = std::min(enough * (1 + kProven), best.seconds + kAmbition * std::abs(best.seconds));
    const double length = scale * (target - best.seconds) / norm;
    for (size_t s = 0; s < n; ++s) money[s] = std::max(0.0, prices.money[s] + length * overused[s]);
  }
  return best;
}

}  // namespace sailor
