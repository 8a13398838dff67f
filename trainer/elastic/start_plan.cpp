#include "trainer/elastic/start_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "planner/plan/plan_nodes.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/name_list.h"

namespace sailor {
namespace {

constexpr double kSearch_s = 10;

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  const size_t shown = std::min(kShown, names.size());
  const std::string some =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  return names.size() == shown ? some : fmt::format("{} and {} more", some, names.size() - shown);
}

std::vector<std::string> sorted_nodes(const Plan& plan) {
  std::vector<std::string> nodes = RankLayout(plan).nodes();
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// On nodes of which some are missing, or of other kinds.
StartPlan plan_again(const JobSpec& job, const Plan& plan, const Plan& previous, const Snapshot& usable,
                     const std::vector<std::string>& nodes, const Replanner::Options& options) {
  const std::string planned = names_text(sorted_nodes(plan));
  const std::string otherwise = fmt::format("planned for {}, but the job has {}", planned, names_text(nodes));
  if (usable.nodes.empty()) throw std::runtime_error(otherwise + ", which are of another kind");
  Replanner replanner(job, plan, options);
  std::vector<LiveGpu> gpus;
  for (const SnapshotNode& node : usable.nodes) {
    replanner.add_node(node);
    for (const int gpu : node.free_gpus) gpus.push_back({node.name, gpu});
  }
  Replanned made = replanner.plan_for(gpus, previous, {}, Replanner::Time{kSearch_s});
  if (!made.plan) throw std::runtime_error(otherwise + ": " + made.text);
  return {
      *made.plan,
      fmt::format("planned for {}, runs on {}: {}", planned, names_text(sorted_nodes(*made.plan)), made.text),
      {},
      std::move(made.nodes)};
}

}  // namespace

void StartPlan::place(PlanningFiles& planning) const {
  const auto cluster = planning.find("cluster.yaml");
  if (cluster == planning.end() || text.empty()) return;
  cluster->second =
      to_yaml(nodes.nodes.empty() ? moved(parse_snapshot(cluster->second, "cluster.yaml"), moves) : nodes);
}

StartPlan plan_for_nodes(const JobSpec& job, const Plan& plan, const std::vector<NodeGroup>& groups,
                         const std::vector<std::string>& nodes, const Replanner::Options& options) {
  const std::vector<std::string> planned = sorted_nodes(plan);
  const auto there = [&](const std::string& name) { return contains(nodes, name); };
  if (groups.empty() || std::all_of(planned.begin(), planned.end(), there)) return {plan};
  const NodeMoves moves = moves_to(nodes, groups);
  Plan placed = moved(plan, moves);
  const std::vector<std::string> now = sorted_nodes(placed);
  if (!std::all_of(now.begin(), now.end(), there))
    return plan_again(job, plan, placed, like_planned(nodes_of_plan(plan), groups, nodes), nodes, options);
  return {std::move(placed),
          fmt::format("planned for {}, runs on {}", names_text(planned), names_text(now)),
          moves,
          {}};
}

}  // namespace sailor
