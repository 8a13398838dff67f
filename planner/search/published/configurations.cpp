#include "planner/search/published/configurations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "planner/search/bounds/work_bound.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<int> microbatch_sizes(const PlanningContext& context, const Resources& resources) {
  std::set<int> sizes;
  for (const Option& option : resources.options)
    for (const auto& [cell, times] : context.profiles.layers.at(option.gpu_type).cells)
      if (cell.second == option.tp && cell.first <= context.job.training.global_batch)
        sizes.insert(cell.first);
  return {sizes.begin(), sizes.end()};
}

}  // namespace

CostTables cost_tables(const PlanningContext& context, const Resources& resources,
                       const PlanOptions& options) {
  CostTables out;
  for (int microbatch : microbatch_sizes(context, resources))
    out.push_back(std::make_unique<StageCosts>(context, resources, options.cost_model, microbatch));
  return out;
}

Configurations list_configurations(const PlanningContext& context, const Resources& resources,
                                   const std::vector<std::unique_ptr<StageCosts>>& tables, const Goal& goal,
                                   double overhead_s, bool all_replicas,
                                   std::map<std::string, int64_t>& rejected) {
  Configurations out;
  const int gpus = resources.gpus();
  out.least_s = out.least_usd = kNever;
  for (const auto& table : tables) {
    const StageCosts& costs = *table;
    const int microbatch = costs.microbatch();
    const WorkBound bound(costs, resources);
    const int64_t total = num_microbatches(context.job.training.global_batch, microbatch);
    const int most = static_cast<int>(std::min<int64_t>(total, gpus));
    int64_t last_rounds = 0;
    for (int replicas = costs.sharded() ? 2 : 1; replicas <= most; ++replicas) {
      const int64_t rounds = (total + replicas - 1) / replicas;
      Configuration c{&costs, replicas, static_cast<double>(rounds),
                      bound.iteration_s(replicas, total) + overhead_s, bound.usd(replicas, total)};
      const bool same = rounds == last_rounds;
      last_rounds = rounds;
      if (!std::isfinite(c.bound_s)) continue;
      if (!bound.memory_suffices(replicas)) {
        ++rejected["memory"];
        continue;
      }
      if (c.bound_s > goal.max_iteration_s) {
        ++rejected["throughput floor"];
        continue;
      }
      if (c.bound_usd > goal.max_usd) {
        ++rejected["budget"];
        continue;
      }
      out.least_s = std::min(out.least_s, c.bound_s);
      out.least_usd = std::min(out.least_usd, c.bound_usd);
      // As many rounds with more replicas: more to synchronise, more GPUs, nothing gained.
      if (same && !all_replicas) continue;
      out.list.push_back(c);
    }
  }
  return out;
}

}  // namespace sailor
