#include "planner/search/problem/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "planner/search/problem/goal.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

template <typename Range>
bool wanted(const Range& filter, const std::string& name) {
  return filter.empty() || std::find(filter.begin(), filter.end(), name) != filter.end();
}

std::vector<Pool> make_pools(const Snapshot& usable) {
  std::map<std::pair<std::string, std::string>, Pool> pools;
  for (const SnapshotNode& node : usable.nodes) {
    if (node.free_gpus.empty()) continue;
    Pool& pool = pools[{node.zone, node.gpu_type}];
    pool.gpu_type = node.gpu_type;
    pool.zone = node.zone;
    pool.region = node.region.empty() ? node.zone : node.region;
    pool.free_by_node.push_back(static_cast<int>(node.free_gpus.size()));
  }
  std::vector<Pool> out;
  for (auto& [key, pool] : pools) {
    std::sort(pool.free_by_node.rbegin(), pool.free_by_node.rend());
    out.push_back(std::move(pool));
  }
  return out;
}

// Rate of the tracked expense for GPUs of the pool. Throws if the rate of an expense that is minimized or
// limited is unknown.
GpuRate rate_of(const PlanningContext& context, CostModel model, const Goal& goal, const Pool& pool) {
  const bool by_node = model == CostModel::native;
  for (const Expense expense : kExpenses) {
    if (!goal.carries(expense) || (by_node ? least_gpu_rate(context, expense, pool.gpu_type, pool.zone)
                                           : gpu_rate(context, expense, pool.gpu_type, pool.zone)))
      continue;
    const ExpenseKind& kind = kind_of(expense);
    const bool lacks_spot = by_node && gpu_rate(context, expense, pool.gpu_type, pool.zone);
    throw InputError(
        {context.catalog.file, 0},
        fmt::format("gpu_types.{0} has no {1}, without which plans cannot be chosen or limited by {2}: "
                    "add it, or leave the type out (--max-gpus {0}=0)",
                    pool.gpu_type, lacks_spot ? "spot_usd_per_hour" : kind.rate_key, kind.name));
  }
  return gpu_rate(context, goal.followed(), pool.gpu_type, pool.zone).value_or(GpuRate{});
}

// A limit on GPUs that are used together.
struct Counter {
  int pool;  // -1: all pools of `type`, or of every type if it is empty
  std::string type;
  int least_gpus;
};

// Those that are profiled; and of these, as far as a node has GPUs, several together: a ring of them only
// where it takes the node, or an equal part of it.
std::vector<ReplicaShape> shapes_of(const PlanningContext& context, const LayerProfile& profile,
                                    bool context_parallel, int most_gpus) {
  std::vector<ReplicaShape> shapes = profile.shapes();
  const size_t profiled = shapes.size();
  for (size_t i = 0; context_parallel && i < profiled; ++i)
    for (ReplicaShape more{.tp = shapes[i].tp, .cp = 2}; more.gpus() <= most_gpus; ++more.cp)
      if (context.job.model.ring_degree(more) == 1 ||
          (context.framework.ring_attention && most_gpus % more.gpus() == 0))
        shapes.push_back(more);
  std::sort(shapes.begin(), shapes.end());
  return shapes;
}

// Adds the options of a pool, and what counts their GPUs.
void add_pool(const PlanningContext& context, const PlanOptions& options, bool context_parallel,
              size_t number, Resources& out, std::vector<Counter>& counters,
              std::map<std::string, int64_t>& rejected) {
  const Goal goal = goal_of(context.job);
  const Pool& pool = out.pools[number];
  const auto profile = context.profiles.layers.find(pool.gpu_type);
  if (profile == context.profiles.layers.end()) {
    ++rejected["not profiled"];
    return;
  }
  int limit = std::min(pool.gpus(), context.job.resources.most_gpus(pool.gpu_type, pool.zone));
  for (const std::string& type : {pool.gpu_type, std::string()})
    if (const GpuLimit* of_cluster = context.snapshot.limit_on(type))
      limit = std::min(limit, of_cluster->gpus);
  int covered = limit;
  counters.push_back({static_cast<int>(number), pool.gpu_type, 1});
  out.capacity.push_back(limit);
  const int most_tp = context.framework.max_tensor_parallel;
  const int most_gpus = std::min(limit, pool.free_by_node.front());
  for (const ReplicaShape& shape : shapes_of(context, profile->second, context_parallel, most_gpus)) {
    if (most_tp > 0 && shape.tp > most_tp) continue;
    if (shape.gpus() > pool.free_by_node.front() || shape.gpus() > limit) {
      ++rejected[shape.gpus() > pool.free_by_node.front() ? "TP degree larger than a node" : "quota"];
      continue;
    }
    if (options.cost_model == CostModel::native && !context.job.model.splits_over(shape)) {
      ++rejected["TP degree does not divide the model"];
      continue;
    }
    if (context.profiles.sizes.find({.tp = shape.tp}) == nullptr) {
      ++rejected["not profiled"];
      continue;
    }
    if (const int cover = std::min(limit, pool.gpus_in_groups_of(shape.gpus())); cover < covered) {
      covered = cover;
      counters.push_back({static_cast<int>(number), pool.gpu_type, shape.gpus()});
      out.capacity.push_back(cover);
    }
    Option option;
    option.pool = static_cast<int>(number);
    option.shape = shape;
    option.gpu_type = pool.gpu_type;
    option.zone = pool.zone;
    option.region = pool.region;
    option.rate = shape.gpus() * rate_of(context, options.cost_model, goal, pool);
    option.capacity_bytes = context.catalog.at(pool.gpu_type).memory_bytes;
    out.options.push_back(option);
  }
}

std::vector<int> use_of(const Option& option, const std::vector<Counter>& counters) {
  std::vector<int> use;
  for (const Counter& counter : counters) {
    const bool counts = counter.pool < 0
                            ? counter.type.empty() || counter.type == option.gpu_type
                            : counter.pool == option.pool && option.shape.gpus() >= counter.least_gpus;
    use.push_back(counts ? option.shape.gpus() : 0);
  }
  return use;
}

void find_supplies(Resources& out) {
  std::map<std::pair<std::string, std::string>, std::vector<int>> supplies;
  for (size_t o = 0; o < out.options.size(); ++o)
    supplies[{out.options[o].region, out.options[o].gpu_type}].push_back(static_cast<int>(o));
  for (auto& [name, of_supply] : supplies) {
    Supply supply{name.first, std::move(of_supply), 0};
    std::set<int> pools;
    for (int o : supply.options) {
      out.options[o].supply = static_cast<int>(out.supplies.size());
      if (pools.insert(out.options[o].pool).second) supply.gpus += out.free_gpus(out.options[o].pool);
    }
    out.supplies.push_back(std::move(supply));
  }
}

// Of the job and of the cluster, over all zones: by type, and under an empty name of all types together.
std::map<std::string, int> limits_of_types(const PlanningContext& context) {
  std::map<std::string, int> limits = context.job.resources.max_gpus;
  if (auto total = limits.extract(kTotalGpus)) {
    total.key().clear();
    limits.insert(std::move(total));
  }
  for (const GpuLimit& limit : context.snapshot.limits) {
    int& least = limits.emplace(limit.gpu_type, limit.gpus).first->second;
    least = std::min(least, limit.gpus);
  }
  return limits;
}

// Pools, options and counters of the nodes in `usable`.
Resources build(const PlanningContext& context, const PlanOptions& options, bool context_parallel,
                Snapshot usable, std::map<std::string, int64_t>& rejected) {
  Resources out;
  out.usable = std::move(usable);
  out.pools = make_pools(out.usable);
  std::map<std::string, int> pools_of_type;
  for (const Pool& pool : out.pools) ++pools_of_type[pool.gpu_type];
  std::vector<Counter> counters;
  for (size_t p = 0; p < out.pools.size(); ++p)
    add_pool(context, options, context_parallel, p, out, counters, rejected);
  for (const auto& [type, limit] : limits_of_types(context))
    if ((type.empty() ? static_cast<int>(out.pools.size()) : pools_of_type[type]) > 1) {
      counters.push_back({-1, type, 1});
      out.capacity.push_back(limit);
    }
  for (const Option& option : out.options) out.use.push_back(use_of(option, counters));
  find_supplies(out);
  return out;
}

}  // namespace

int Pool::gpus() const {
  return gpus_in_groups_of(1);
}

int Pool::gpus_in_groups_of(int gpus) const {
  int covered = 0;
  for (int free : free_by_node) covered += free / gpus * gpus;
  return covered;
}

int Resources::gpus() const {
  int gpus = 0;
  for (const Pool& pool : pools) gpus += pool.gpus();
  return gpus;
}

int Resources::free_gpus(int pool) const {
  for (size_t o = 0; o < options.size(); ++o) {
    if (options[o].pool != pool) continue;
    // The pool's own counter is the first that the option uses.
    for (size_t c = 0; c < capacity.size(); ++c)
      if (use[o][c] > 0) return capacity[c];
  }
  return 0;
}

void Resources::take(int option, int64_t replicas, std::vector<int64_t>& left) const {
  for (size_t c = 0; c < left.size(); ++c) left[c] -= replicas * use[option][c];
}

int Resources::room(int option, const std::vector<int64_t>& left, int most) const {
  int64_t replicas = most;
  for (size_t c = 0; c < left.size(); ++c)
    if (use[option][c] > 0) replicas = std::min(replicas, left[c] / use[option][c]);
  return static_cast<int>(std::max<int64_t>(0, replicas));
}

Resources usable_resources(const PlanningContext& context, const PlanOptions& options,
                           std::map<std::string, int64_t>& rejected, bool context_parallel) {
  for (const auto& [type, limit] : context.job.resources.max_gpus)
    if (type != kTotalGpus) context.catalog.at(type);
  for (const auto& [type, limits] : context.job.resources.max_gpus_in_zone) context.catalog.at(type);
  const ResourceSpec& limits = context.job.resources;
  Snapshot usable = context.snapshot;
  std::erase_if(usable.nodes, [&](const SnapshotNode& node) {
    return !wanted(limits.zones, node.zone) || !wanted(limits.partitions, node.partition);
  });
  std::sort(usable.nodes.begin(), usable.nodes.end(),
            [](const SnapshotNode& a, const SnapshotNode& b) { return a.name < b.name; });
  return build(context, options, context_parallel, std::move(usable), rejected);
}

}  // namespace sailor
