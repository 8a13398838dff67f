#include "planner/replay/trace_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace sailor {
namespace {

bool is_of(const SnapshotNode& node, const ReplayPool& pool) {
  return node.gpu_type == pool.gpu_type && node.zone == pool.zone;
}

}  // namespace

TraceCluster::TraceCluster(std::vector<ReplayPool> pools, Snapshot base, uint64_t seed)
    : pools_(std::move(pools)), snapshot_(std::move(base)), random_(seed) {
  snapshot_.nodes.clear();
  snapshot_.not_free.clear();
}

LostGpus TraceCluster::change_to(const std::vector<int>& gpus) {
  LostGpus lost;
  for (size_t i = 0; i < pools_.size(); ++i) {
    int there = 0;
    for (const SnapshotNode& node : snapshot_.nodes)
      if (is_of(node, pools_[i])) there += static_cast<int>(node.free_gpus.size());
    if (gpus[i] < there) remove(pools_[i], there - gpus[i], lost);
    if (gpus[i] > there) add(pools_[i], gpus[i] - there);
  }
  return lost;
}

// Whole nodes while there are enough GPUs.
void TraceCluster::add(const ReplayPool& pool, int gpus) {
  while (gpus > 0) {
    const int now = std::min(gpus, pool.gpus_per_node);
    SnapshotNode node;
    node.name = fmt::format("n{}", ++nodes_made_);
    node.zone = pool.zone;
    node.region = pool.region;
    node.gpu_type = pool.gpu_type;
    node.gpus = pool.gpus_per_node;
    node.free_gpus.resize(static_cast<size_t>(now));
    node.shared = now < node.gpus;
    std::iota(node.free_gpus.begin(), node.free_gpus.end(), 0);
    snapshot_.nodes.push_back(std::move(node));
    gpus -= now;
  }
}

void TraceCluster::remove(const ReplayPool& pool, int gpus, LostGpus& lost) {
  while (gpus > 0) {
    std::vector<size_t> candidates;
    for (size_t i = 0; i < snapshot_.nodes.size(); ++i)
      if (is_of(snapshot_.nodes[i], pool)) candidates.push_back(i);
    const size_t index = candidates[random_() % candidates.size()];
    SnapshotNode& node = snapshot_.nodes[index];
    while (gpus > 0 && !node.free_gpus.empty()) {
      lost.emplace(node.name, node.free_gpus.back());
      node.free_gpus.pop_back();
      node.shared = true;
      --gpus;
    }
    if (node.free_gpus.empty())
      snapshot_.nodes.erase(snapshot_.nodes.begin() + static_cast<ptrdiff_t>(index));
  }
}

std::string TraceCluster::shape() const {
  std::map<std::string, int> nodes;
  for (const SnapshotNode& node : snapshot_.nodes)
    ++nodes[fmt::format("{}/{}/{}", node.gpu_type, node.zone, node.free_gpus.size())];
  std::string out;
  for (const auto& [kind, count] : nodes) out += fmt::format("{}x{};", kind, count);
  return out;
}

}  // namespace sailor
