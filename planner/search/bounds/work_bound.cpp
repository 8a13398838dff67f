#include "planner/search/bounds/work_bound.h"

#include <algorithm>
#include <limits>

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// What a GPU of one pool gives at best.
struct PoolBest {
  int gpus = 0;
  double blocks_per_s = 0;  // of one GPU
  double free_bytes = 0;    // of one GPU
};

}  // namespace

WorkBound::WorkBound(const StageCosts& costs, const Resources& resources) : costs_(costs) {
  const int layers = costs.layers();
  // The unit of work of an option is its median layer (a block); a layer's value is the least number of units
  // that it takes on any option, so that no option ever does more value per second than one per unit.
  std::vector<double> value(layers, kNever);
  std::vector<PoolBest> pools(resources.pools.size());
  for (int o : costs.options()) {
    if (resources.options[o].plain >= 0) continue;  // recomputing only adds to the work
    std::vector<double> times;
    for (int layer = 0; layer < layers; ++layer) times.push_back(costs.compute_s(o, layer, layer + 1));
    std::nth_element(times.begin(), times.begin() + layers / 2, times.end());
    const double unit = std::max(times[layers / 2], std::numeric_limits<double>::min());
    for (int layer = 0; layer < layers; ++layer)
      value[layer] = std::min(value[layer], costs.compute_s(o, layer, layer + 1) / unit);
    const Option& option = resources.options[o];
    PoolBest& pool = pools[option.pool];
    pool.blocks_per_s = std::max(pool.blocks_per_s, 1.0 / (unit * option.tp));
    pool.free_bytes = std::max(pool.free_bytes, costs.most_free_bytes(o));
    // The pool's own counter is the first that the option uses.
    for (size_t c = 0; pool.gpus == 0 && c < resources.capacity.size(); ++c)
      if (resources.use[o][c] > 0) pool.gpus = resources.capacity[c];
  }
  double work = 0, rate = 0;
  for (int layer = 0; layer < layers; ++layer) {
    if (value[layer] < kNever) work += value[layer];
    longest_layer_s_ = std::max(longest_layer_s_, costs.least_compute_s(layer, layer + 1));
  }
  for (const PoolBest& pool : pools) {
    rate += pool.blocks_per_s * pool.gpus;
    free_bytes_ += pool.free_bytes * pool.gpus;
    gpus_ += pool.gpus;
  }
  model_s_ = rate > 0 ? work / rate : kNever;
}

bool WorkBound::memory_suffices(int replicas) const {
  return replicas * costs_.least_memory_bytes() <= free_bytes_;
}

double WorkBound::iteration_s(int replicas, int64_t total) const {
  const double rounds = static_cast<double>((total + replicas - 1) / replicas);
  const double once = costs_.least_compute_s(0, costs_.layers());
  if (costs_.model() == CostModel::published)
    return (rounds - 1) * std::max(longest_layer_s_, replicas * model_s_) + once +
           costs_.least_sync_s(replicas, gpus_ / replicas);
  return std::max({once, static_cast<double>(total) * model_s_, rounds * longest_layer_s_});
}

double WorkBound::usd(int replicas, int64_t total) const {
  const int64_t paid =
      costs_.model() == CostModel::published ? (total + replicas - 1) / replicas * replicas : total;
  return static_cast<double>(paid) * costs_.least_usd(0, costs_.layers());
}

}  // namespace sailor
