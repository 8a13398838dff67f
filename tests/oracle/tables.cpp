#include "tests/oracle/tables.h"

#include <algorithm>
#include <map>

#include "tests/oracle/score.h"

namespace sailor::oracle {

Pools::Pools(const Problem& problem) : problem_(problem) {
  for (const auto& [tp, layers] : problem.sizes) degrees_.push_back(tp);
  std::map<std::pair<int, int>, PoolOfGpus> pools;
  for (const NodeOfCluster& node : problem.nodes) {
    if (node.free.empty() || !problem.zones[node.zone].wanted) continue;
    PoolOfGpus& pool = pools[{node.type, node.zone}];
    pool.type = node.type;
    pool.zone = node.zone;
    pool.region = problem.zones[node.zone].region;
    pool.free_by_node.push_back(static_cast<int>(node.free.size()));
    most_gpus_ += static_cast<int>(node.free.size());
  }
  for (const auto& [key, pool] : pools) list_.push_back(pool);
  // Every number of groups of every degree, up to as many as there are GPUs.
  const int base = most_gpus_ + 1;
  for (const PoolOfGpus& pool : list_) {
    std::vector<bool> fits(1, true);
    for (size_t d = 0; d < degrees_.size(); ++d) fits.resize(fits.size() * static_cast<size_t>(base));
    for (size_t number = 0; number < fits.size(); ++number) {
      std::map<int, int> groups;
      int gpus = 0, free = 0;
      size_t digits = number;
      for (int tp : degrees_) {
        groups[tp] = static_cast<int>(digits % static_cast<size_t>(base));
        gpus += tp * groups[tp];
        digits /= static_cast<size_t>(base);
      }
      for (int of_node : pool.free_by_node) free += of_node;
      fits[number] = gpus <= free && groups_fit(pool.free_by_node, groups);
    }
    fits_.push_back(std::move(fits));
  }
  bytes_.push_back(0);
  for (const LayerSize& layer : problem.sizes.at(1))
    bytes_.push_back(bytes_.back() + 4 * static_cast<double>(layer.parameters));
  const size_t ranges = static_cast<size_t>(problem.layers + 1) * static_cast<size_t>(problem.layers + 1);
  sync_.assign(ranges * static_cast<size_t>(base) * 5 * list_.size() * list_.size(), -1);
}

bool Pools::fits(int pool, const std::vector<int>& groups) const {
  size_t number = 0;
  for (size_t d = groups.size(); d-- > 0;)
    number = number * static_cast<size_t>(most_gpus_ + 1) + static_cast<size_t>(groups[d]);
  return fits_[pool][number];
}

double Pools::sync_s(int first, int end, int replicas, int shard, int from, int to) {
  size_t index = static_cast<size_t>(first * (problem_.layers + 1) + end);
  index = index * static_cast<size_t>(most_gpus_ + 1) + static_cast<size_t>(replicas);
  index = index * 5 + static_cast<size_t>(shard);
  index = (index * list_.size() + static_cast<size_t>(from)) * list_.size() + static_cast<size_t>(to);
  double& s = sync_[index];
  if (s < 0) {
    const PoolOfGpus &a = list_[from], &b = list_[to];
    s = all_reduce_s(problem_.links.at({{a.type, a.zone, 1}, {b.type, b.zone, 1}}),
                     stage_bytes(first, end) / shard, replicas);
  }
  return s;
}

Ways::Ways(const Problem& problem, const Pools& pools, int microbatch)
    : problem_(problem), microbatch_(microbatch) {
  const int L = problem.layers;
  for (int p = 0; p < static_cast<int>(pools.list().size()); ++p) {
    const PoolOfGpus& pool = pools.list()[p];
    const int largest = *std::max_element(pool.free_by_node.begin(), pool.free_by_node.end());
    for (int d = 0; d < static_cast<int>(pools.degrees().size()); ++d) {
      const int tp = pools.degrees()[d];
      const auto cell = problem.types[pool.type].times.find({microbatch, tp});
      if (tp > largest || cell == problem.types[pool.type].times.end()) continue;
      list_.push_back({p, tp, d, tp * problem.usd_per_hour[pool.type][pool.zone] / 3600});
      capacity_.push_back(static_cast<double>(problem.types[pool.type].memory_bytes));
      std::vector<double> compute(static_cast<size_t>((L + 1) * (L + 1)));
      std::vector<double> update, bytes;
      for (int first = 0; first < L; ++first) {
        double s = 0;
        for (int end = first + 1; end <= L; ++end) {
          s += cell->second[end - 1].forward_s + cell->second[end - 1].backward_s;
          compute[static_cast<size_t>(first * (L + 1) + end)] = s;
        }
        update.push_back(cell->second[first].update_s);
      }
      compute_.push_back(std::move(compute));
      update_.push_back(std::move(update));
    }
  }
  message_bytes_.assign(static_cast<size_t>(L), std::vector<double>(list_.size()));
  message_s_.resize(static_cast<size_t>(L) * list_.size() * list_.size());
  for (int layer = 0; layer < L; ++layer)
    for (int from = 0; from < size(); ++from) {
      const PoolOfGpus& a = pools.list()[list_[from].pool];
      const double bytes =
          4.0 * microbatch * static_cast<double>(problem.sizes.at(list_[from].tp)[layer].output_elements);
      message_bytes_[layer][from] = bytes;
      for (int to = 0; to < size(); ++to) {
        const PoolOfGpus& b = pools.list()[list_[to].pool];
        message_s_[static_cast<size_t>((layer * size() + from) * size() + to)] =
            problem.links.at({{a.type, a.zone, list_[from].tp}, {b.type, b.zone, list_[to].tp}})
                .seconds(bytes);
      }
    }
}

double Ways::compute_s(int way, int first, int end, int in_flight) const {
  if (memory_bytes(problem_, list_[way].tp, microbatch_, first, end, in_flight) > capacity_[way])
    return kNever;
  return compute_[way][static_cast<size_t>(first * (problem_.layers + 1) + end)];
}

}  // namespace sailor::oracle
