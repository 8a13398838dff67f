#include "tests/bench/native/adjacent_clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/bench/native/searched.h"

namespace sailor::bench {
namespace {

constexpr double kEqual_pct = 1e-7;

// Without a node of every type in every zone, the one with the fewest free GPUs, and without every type.
std::vector<ClusterPart> smaller_clusters(const Snapshot& snapshot) {
  std::set<std::pair<std::string, std::string>> pools;
  std::set<std::string> types;
  for (const SnapshotNode& node : snapshot.nodes) {
    if (node.free_gpus.empty()) continue;
    pools.insert({node.gpu_type, node.zone});
    types.insert(node.gpu_type);
  }
  std::vector<ClusterPart> parts;
  for (const auto& [type, zone] : pools) {
    const SnapshotNode* fewest = nullptr;
    for (const SnapshotNode& node : snapshot.nodes)
      if (node.gpu_type == type && node.zone == zone && !node.free_gpus.empty() &&
          (fewest == nullptr || node.free_gpus.size() <= fewest->free_gpus.size()))
        fewest = &node;
    ClusterPart part{fmt::format("a {} in {}", type, zone), snapshot};
    std::erase_if(part.snapshot.nodes, [&](const SnapshotNode& node) { return node.name == fewest->name; });
    parts.push_back(std::move(part));
  }
  for (const std::string& type : types) {
    ClusterPart part{fmt::format("all {}", type), snapshot};
    std::erase_if(part.snapshot.nodes, [&](const SnapshotNode& node) { return node.gpu_type == type; });
    parts.push_back(std::move(part));
  }
  std::erase_if(parts, [](const ClusterPart& part) { return part.snapshot.nodes.empty(); });
  return parts;
}

Searched searched_on(const RandomProblem& problem, const Snapshot& snapshot, const NativeOptions& options) {
  Inputs inputs = problem.inputs;
  inputs.snapshot = snapshot;
  return searched(inputs, PlanOptions().allow, options);
}

}  // namespace

int run_adjacent(const NativeOptions& options) {
  const Catalog catalog = load_catalog(options.catalog);
  fmt::print(stderr, "# seed {}\n", options.seed);
  fmt::print("problem,gpus,without,smaller_s,larger_s,worse_pct,larger_cpu_s,nodes,used_nodes\n");
  int pairs = 0, slower = 0;
  double losses_pct = 0, most_pct = 0;
  const int first = std::max(0, options.only), end = options.only < 0 ? options.count : first + 1;
  for (int number = first; number < end; ++number) {
    const RandomProblem problem = random_problem(catalog, options.seed, number, options.limits);
    const Searched larger = searched_on(problem, problem.inputs.snapshot, options);
    for (const ClusterPart& part : smaller_clusters(problem.inputs.snapshot)) {
      const Searched smaller = searched_on(problem, part.snapshot, options);
      if (smaller.iteration_s == 0) continue;
      const double worse_pct =
          larger.iteration_s == 0 ? 100 : 100 * (larger.iteration_s / smaller.iteration_s - 1);
      fmt::print("{},{},{},{:.6g},{:.6g},{:.3f},{:.3f},{},{}\n", number, problem.gpus(), part.name,
                 smaller.iteration_s, larger.iteration_s, worse_pct, larger.cpu_s,
                 problem.inputs.snapshot.nodes.size(), larger.nodes);
      std::fflush(stdout);
      ++pairs;
      if (worse_pct <= kEqual_pct) continue;
      ++slower;
      losses_pct += worse_pct;
      most_pct = std::max(most_pct, worse_pct);
    }
  }
  fmt::print(
      stderr,
      "# {} pairs of clusters, {} with a slower plan for the larger one; worse by {:.3f} % in the mean "
      "of all pairs, {:.2f} % at most\n",
      pairs, slower, losses_pct / std::max(1, pairs), most_pct);
  return slower == 0 ? 0 : 1;
}

}  // namespace sailor::bench
