#include "planner/search/bounds.h"

#include <algorithm>
#include <limits>

namespace sailor {

WorkBound::WorkBound(const StageCosts& costs, const Resources& resources)
    : costs_(costs), resources_(resources) {
  const int layers = costs.layers();
  // The unit of work of an option is its median layer (a block); a layer's value is the least number of units
  // that it takes on any option, so that no option ever does more value per second than one per unit.
  std::vector<double> value(layers, std::numeric_limits<double>::infinity());
  rate_.assign(resources.pools.size(), 0);
  free_bytes_.assign(resources.pools.size(), 0);
  pool_counter_.assign(resources.pools.size(), -1);
  for (int o : costs.options()) {
    std::vector<double> times;
    for (int layer = 0; layer < layers; ++layer) times.push_back(costs.compute_s(o, layer, layer + 1));
    std::nth_element(times.begin(), times.begin() + layers / 2, times.end());
    const double unit = std::max(times[layers / 2], std::numeric_limits<double>::min());
    for (int layer = 0; layer < layers; ++layer)
      value[layer] = std::min(value[layer], costs.compute_s(o, layer, layer + 1) / unit);
    const Option& option = resources.options[o];
    rate_[option.pool] = std::max(rate_[option.pool], 1.0 / (unit * option.tp));
    free_bytes_[option.pool] = std::max(free_bytes_[option.pool], costs.most_free_bytes(o));
    for (size_t c = 0; pool_counter_[option.pool] < 0 && c < resources.capacity.size(); ++c)
      if (resources.use[o][c] > 0) pool_counter_[option.pool] = static_cast<int>(c);
  }
  for (int counter : pool_counter_)
    if (counter >= 0) gpus_ += resources.capacity[counter];
  work_.assign(1, 0);
  for (int layer = 0; layer < layers; ++layer) {
    work_.push_back(work_.back() +
                    (value[layer] < std::numeric_limits<double>::infinity() ? value[layer] : 0));
    longest_layer_s_ = std::max(longest_layer_s_, costs.least_compute_s(layer, layer + 1));
  }
}

double WorkBound::bottleneck_s(int replicas, int end, const std::vector<int>& left) const {
  double rate = 0;
  for (size_t p = 0; p < rate_.size(); ++p)
    if (pool_counter_[p] >= 0) rate += rate_[p] * left[pool_counter_[p]];
  return rate > 0 ? replicas * work_[end] / rate : std::numeric_limits<double>::infinity();
}

bool WorkBound::memory_suffices(int replicas, int end, int in_flight, const std::vector<int>& left) const {
  double room = 0;
  for (size_t p = 0; p < free_bytes_.size(); ++p)
    if (pool_counter_[p] >= 0) room += free_bytes_[p] * left[pool_counter_[p]];
  return replicas * costs_.least_memory_bytes(0, end, in_flight) <= room;
}

double WorkBound::sync_s(int replicas) const {
  return costs_.least_sync_s(replicas, gpus_ / replicas);
}

double WorkBound::bottleneck_s(int replicas) const {
  return std::max(longest_layer_s_, bottleneck_s(replicas, costs_.layers(), resources_.capacity));
}

double WorkBound::iteration_s(int replicas, int64_t total) const {
  const double rounds = static_cast<double>((total + replicas - 1) / replicas);
  const double once = costs_.least_compute_s(0, costs_.layers());
  if (costs_.model() == CostModel::published)
    return (rounds - 1) * bottleneck_s(replicas) + once + sync_s(replicas);
  const double work = static_cast<double>(total) * bottleneck_s(1, costs_.layers(), resources_.capacity);
  return std::max({once, work, rounds * longest_layer_s_});
}

double WorkBound::usd(int replicas, int64_t total) const {
  const int64_t paid =
      costs_.model() == CostModel::published ? (total + replicas - 1) / replicas * replicas : total;
  return static_cast<double>(paid) * costs_.least_usd(0, costs_.layers());
}

}  // namespace sailor
