#include "planner/search/native/space.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace sailor::native {
namespace {

// How many of a pool's nodes, in that order, hold that many GPU groups of at most `largest` GPUs, however
// they are filled.
size_t nodes_for(int64_t groups, int largest, const std::vector<int>& free) {
  size_t nodes = 0;
  for (; nodes < free.size() && groups > 0; ++nodes) groups -= free[nodes] / largest;
  return nodes;
}

}  // namespace

int SpacePool::room_for(int replica_gpus) const {
  int replicas = 0;
  for (const int free_gpus : free) replicas += free_gpus / replica_gpus;
  return std::min(replicas, gpus / replica_gpus);
}

Space::Space(const PlanningContext& context, const Resources& resources, TokenSplit split,
             bool split_backward, bool may_offload)
    : context(context),
      resources(resources),
      split(split),
      split_backward(split_backward),
      may_offload(may_offload),
      charged(goal_of(context.job).followed()),
      kinds(context) {
  // Nodes below the leaf switch with most of a pool's GPUs first, so that small plans stay below one.
  std::map<std::string, int> below;
  for (const SnapshotNode& node : resources.usable.nodes)
    below[node.leaf_switch] += static_cast<int>(node.free_gpus.size());
  for (size_t p = 0; p < resources.pools.size(); ++p) {
    const Pool& pool = resources.pools[p];
    std::vector<const SnapshotNode*> of_pool;
    for (const SnapshotNode& node : resources.usable.nodes)
      if (node.zone == pool.zone && node.gpu_type == pool.gpu_type && !node.free_gpus.empty())
        of_pool.push_back(&node);
    std::sort(of_pool.begin(), of_pool.end(), [&](const SnapshotNode* a, const SnapshotNode* b) {
      const auto key = [&](const SnapshotNode* n) {
        return std::tuple(-static_cast<int>(n->free_gpus.size()), bill_of(context, *n).usd_per_gpu_s,
                          -below.at(n->leaf_switch), n->leaf_switch, n->name);
      };
      return key(a) < key(b);
    });
    SpacePool out;
    for (const SnapshotNode* node : of_pool) out.free.push_back(static_cast<int>(node->free_gpus.size()));
    int largest = 1;
    for (const Option& option : resources.options)
      if (option.pool == static_cast<int>(p)) largest = std::max(largest, option.shape.gpus());
    of_pool.resize(nodes_for(most_groups(), largest, out.free));
    out.free.resize(of_pool.size());
    for (const SnapshotNode* node : of_pool) {
      out.nodes.push_back(static_cast<int>(nodes.size()));
      nodes.push_back(node);
      pool_of_node.push_back(static_cast<int>(p));
    }
    out.gpus = std::min(resources.free_gpus(static_cast<int>(p)),
                        std::accumulate(out.free.begin(), out.free.end(), 0));
    out.zone_gpus = out.gpus;
    pools.push_back(std::move(out));
  }
  auto of_nodes = std::make_shared<std::vector<std::optional<NodeBill>>>();
  for (const SnapshotNode* node : nodes) of_nodes->push_back(bill_of(context, *node));
  bills = std::move(of_nodes);
  std::set<int> sizes;
  for (size_t o = 0; o < resources.options.size(); ++o) {
    const Option& option = resources.options[o];
    SpaceOption out;
    out.pool = option.pool;
    out.shape = option.shape;
    most_copies = std::max(most_copies, out.shape.copies());
    out.kind = kinds.number(option.gpu_type, option.zone, option.shape, split == TokenSplit::all);
    out.in_resources = static_cast<int>(o);
    pools[static_cast<size_t>(option.pool)].options.push_back(static_cast<int>(options.size()));
    options.push_back(out);
    for (const int microbatch : context.profiles.layers.at(option.gpu_type).microbatches())
      if (kinds.has_times(out.kind, microbatch) && microbatch <= context.job.training.global_batch)
        sizes.insert(microbatch);
  }
  microbatches.assign(sizes.begin(), sizes.end());
  join_zones();
  find_links();
  gpus_ = gpus();
}

void Space::join_zones() {
  std::map<std::string, std::vector<int>> of_type;
  for (size_t p = 0; p < pools.size(); ++p)
    if (!pools[p].options.empty()) of_type[resources.pools[p].gpu_type].push_back(static_cast<int>(p));
  for (const auto& [type, members] : of_type) {
    if (members.size() < 2) continue;
    SpacePool joint;
    joint.joint = true;
    std::set<ReplicaShape> shapes;
    for (const int member : members) {
      const SpacePool& of = pools[static_cast<size_t>(member)];
      joint.nodes.insert(joint.nodes.end(), of.nodes.begin(), of.nodes.end());
      joint.free.insert(joint.free.end(), of.free.begin(), of.free.end());
      joint.gpus += of.gpus;
      joint.zone_gpus = std::max(joint.zone_gpus, of.gpus);
      for (const int option : of.options) shapes.insert(options[static_cast<size_t>(option)].shape);
    }
    for (const ReplicaShape& shape : shapes) {
      SpaceOption option;
      option.pool = static_cast<int>(pools.size());
      option.shape = shape;
      for (const int member : members)
        if (const int of = option_of(member, shape); of >= 0) {
          option.kind = options[static_cast<size_t>(of)].kind;
          break;
        }
      joint.options.push_back(static_cast<int>(options.size()));
      options.push_back(option);
    }
    pools.push_back(std::move(joint));
  }
}

// A pipeline for each microbatch, with a stage for each layer.
int64_t Space::most_groups() const {
  int smallest = context.job.training.global_batch;
  for (const Option& option : resources.options)
    for (const int microbatch : context.profiles.layers.at(option.gpu_type).microbatches())
      smallest = std::min(smallest, microbatch);
  return num_microbatches(context.job.training.global_batch, smallest) * layers();
}

int Space::gpus() const {
  int64_t gpus = 0;
  int largest = 1;
  for (const SpacePool& pool : pools) gpus += pool.joint ? 0 : pool.gpus;
  for (const SpaceOption& option : options) largest = std::max(largest, option.shape.gpus());
  return static_cast<int>(std::min(gpus, most_groups() * largest));
}

int Space::option_of(int pool, ReplicaShape shape) const {
  for (const int option : pools[static_cast<size_t>(pool)].options)
    if (options[static_cast<size_t>(option)].shape == shape) return option;
  return -1;
}

void Space::find_links() {
  // Kinds in all zones of an option.
  std::vector<std::set<int>> kinds_of;
  for (const SpaceOption& option : options) {
    kinds_of.push_back({option.kind});
    const SpacePool& pool = pools[static_cast<size_t>(option.pool)];
    if (!pool.joint) continue;
    for (const int node : pool.nodes)
      if (const int here = option_of(pool_of_node[static_cast<size_t>(node)], option.shape); here >= 0)
        kinds_of.back().insert(options[static_cast<size_t>(here)].kind);
  }
  for (size_t a = 0; a < options.size(); ++a)
    for (size_t b = 0; b < options.size(); ++b) {
      bool all = true;
      for (const int from : kinds_of[a])
        for (const int to : kinds_of[b])
          all = all && kinds.find_link(from, to, false) != nullptr &&
                kinds.find_link(to, from, false) != nullptr;
      linked_.push_back(all);
    }
}

const KindTimes& Space::least_times(int option, int microbatch) const {
  const auto [known, is_new] = least_times_.try_emplace({option, microbatch});
  KindTimes& least = known->second;
  if (!is_new) return least;
  // Sums over the layers of the least, or the most, of all sizes.
  const auto sum = [&](bool most, const auto& of_layer) {
    std::vector<double> sums = {0};
    for (int layer = 0; layer < layers(); ++layer) {
      std::optional<double> best;
      for (const int size : sizes_of(microbatch)) {
        if (!has_times(option, size)) continue;
        const double s = of_layer(times(option, size), layer, size);
        best = !best ? s : most ? std::max(*best, s) : std::min(*best, s);
      }
      sums.push_back(sums.back() + best.value_or(0));
    }
    return sums;
  };
  least.forward_s =
      sum(false, [](const KindTimes& of, int l, int size) { return of.forward(l, l + 1) / size; });
  least.backward_s = sum(false, [](const KindTimes& of, int l, int size) {
    return of.backward(Recompute::none, l, l + 1) / size;
  });
  // The more of a backward can wait, the earlier its pipeline may end.
  const std::vector<double> weights =
      sum(true, [](const KindTimes& of, int l, int size) { return of.weights(l, l + 1) / size; });
  least.weight_s = {0};
  for (size_t l = 0; l + 1 < weights.size(); ++l)
    least.weight_s.push_back(least.weight_s.back() + std::min(weights[l + 1] - weights[l],
                                                              least.backward_s[l + 1] - least.backward_s[l]));
  for (const Recompute level : kTrainedLevels)
    if (level != Recompute::none)
      least.again_s[static_cast<size_t>(level)] =
          sum(false, [&](const KindTimes& of, int l, int size) { return of.again(level, l, l + 1) / size; });
  least.update_s = sum(false, [](const KindTimes& of, int l, int) {
    return of.update_s[static_cast<size_t>(l) + 1] - of.update_s[static_cast<size_t>(l)];
  });
  return least;
}

double Space::ramp_part(int option, int microbatch) const {
  if (!split_backward) return 1;
  const KindTimes& of = times(option, microbatch);
  const double all_s = of.forward(0, layers()) + of.backward(Recompute::none, 0, layers());
  return all_s > 0 ? std::max(0.0, 1 - 2 * of.weights(0, layers()) / all_s) : 1;
}

bool Space::can_recompute(int option, Recompute recompute) const {
  const std::vector<LayerSizes>& sizes = *kinds[options[static_cast<size_t>(option)].kind].sizes;
  return std::any_of(sizes.begin(), sizes.end(), [&](const LayerSizes& layer) {
    return layer.kept_bytes(recompute) < layer.activation_bytes;
  });
}

}  // namespace sailor::native
