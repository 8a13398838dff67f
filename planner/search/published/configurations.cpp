#include "planner/search/published/configurations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

std::vector<int> microbatch_sizes(const PlanningContext& context, const Resources& resources) {
  std::set<int> sizes;
  for (const Option& option : resources.options)
    for (const auto& [cell, times] : context.profiles.layers.at(option.gpu_type).cells)
      if (cell.second == option.shape && cell.first <= context.job.training.global_batch)
        sizes.insert(cell.first);
  return {sizes.begin(), sizes.end()};
}

// Lower bounds from the work of all GPUs together, for every plan of one microbatch size.
class WorkBound {
 public:
  WorkBound(const StageCosts& costs, const Resources& resources) : costs_(costs) {
    const int layers = costs.layers();
    // The unit of work of an option is its median layer (a block); a layer's value is the least number of
    // units that it takes on any option, so that no option ever does more value per second than one per unit.
    std::vector<double> value(layers, kNever);
    std::vector<double> blocks_per_s(resources.pools.size());  // of one GPU
    for (int o : costs.options()) {
      std::vector<double> times;
      for (int layer = 0; layer < layers; ++layer) times.push_back(costs.compute_s(o, layer, layer + 1));
      std::nth_element(times.begin(), times.begin() + layers / 2, times.end());
      const double unit = std::max(times[layers / 2], std::numeric_limits<double>::min());
      for (int layer = 0; layer < layers; ++layer)
        value[layer] = std::min(value[layer], costs.compute_s(o, layer, layer + 1) / unit);
      const Option& option = resources.options[o];
      blocks_per_s[option.pool] = std::max(blocks_per_s[option.pool], 1.0 / (unit * option.shape.gpus()));
    }
    double work = 0, rate = 0;
    for (int layer = 0; layer < layers; ++layer)
      if (value[layer] < kNever) work += value[layer];
    for (size_t pool = 0; pool < resources.pools.size(); ++pool) {
      if (blocks_per_s[pool] <= 0) continue;
      const int gpus = resources.free_gpus(static_cast<int>(pool));
      rate += blocks_per_s[pool] * gpus;
      gpus_ += gpus;
    }
    model_s_ = rate > 0 ? work / rate : kNever;
  }

  // The busiest pipeline runs all its rounds at the bottleneck.
  double iteration_s(int replicas, double rounds) const {
    return (rounds - 1) * std::max(costs_.longest_layer_s(), replicas * model_s_) +
           costs_.least_compute_s(0, costs_.layers()) + costs_.least_sync_s(replicas, gpus_ / replicas);
  }
  // GPUs are paid for at least while they compute.
  double charge(int replicas, double rounds) const {
    return rounds * replicas * costs_.least_charge(0, costs_.layers());
  }

 private:
  const StageCosts& costs_;
  double model_s_ = 0;  // one microbatch through the model, on all GPUs together, at best
  double gpus_ = 0;
};

}  // namespace

CostTables cost_tables(const PlanningContext& context, const Resources& resources) {
  CostTables out;
  for (int microbatch : microbatch_sizes(context, resources))
    out.push_back(std::make_unique<StageCosts>(context, resources, microbatch));
  return out;
}

Configurations list_configurations(const PlanningContext& context, const Resources& resources,
                                   const CostTables& tables, const Goal& goal, bool all_replicas,
                                   std::map<std::string, int64_t>& rejected) {
  Configurations out;
  out.least_s = out.least_charge = kNever;
  for (const auto& costs : tables) {
    const WorkBound bound(*costs, resources);
    const int64_t total = num_microbatches(context.job.training.global_batch, costs->microbatch());
    const int most = static_cast<int>(std::min<int64_t>(total, resources.gpus()));
    double last_rounds = 0;
    for (int replicas = 1; replicas <= most; ++replicas) {
      const auto rounds = static_cast<double>((total + replicas - 1) / replicas);
      const Configuration c{costs.get(), replicas, rounds, bound.iteration_s(replicas, rounds),
                            bound.charge(replicas, rounds)};
      const bool same = rounds == last_rounds;
      last_rounds = rounds;
      if (!std::isfinite(c.bound_s)) continue;
      const char* why = c.bound_s > goal.max_iteration_s     ? kThroughputFloor
                        : c.bound_charge > goal.max_charge() ? kind_of(goal.followed()).limit
                                                             : nullptr;
      if (why != nullptr) {
        ++rejected[why];
        continue;
      }
      out.least_s = std::min(out.least_s, c.bound_s);
      out.least_charge = std::min(out.least_charge, c.bound_charge);
      // As many rounds with more replicas: more to synchronise, more GPUs, nothing gained.
      if (!same || all_replicas) out.list.push_back(c);
    }
  }
  return out;
}

}  // namespace sailor
