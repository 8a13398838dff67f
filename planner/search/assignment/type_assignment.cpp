#include "planner/search/assignment/type_assignment.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr int kMostMoves = 64;

TypeAssignment groups_of(const AssignmentProblem& problem, const PipelineTemplate& pipeline) {
  const std::vector<Option>& all = problem.costs.resources().options;
  TypeAssignment stages;
  for (const std::vector<int>& options : serving_options(problem, pipeline)) {
    std::vector<GroupShare> shares;
    for (int o : options) {
      const auto same = std::find_if(shares.begin(), shares.end(), [&](const GroupShare& share) {
        return alike_but_for_zone(all[share.options[0]], all[o]);
      });
      if (same == shares.end())
        shares.push_back({{o}, 0});
      else
        same->options.push_back(o);
    }
    stages.push_back(std::move(shares));
  }
  return stages;
}

}  // namespace

std::optional<TypeAssignment> assign_types(const AssignmentProblem& problem,
                                           const PipelineTemplate& pipeline) {
  TypeAssignment stages = groups_of(problem, pipeline);
  const Resources& resources = problem.costs.resources();
  std::vector<int> left;  // GPUs by supply
  for (const Supply& supply : resources.supplies) left.push_back(supply.gpus);
  const auto option_of = [&](const GroupShare& share) -> const Option& {
    return resources.options[share.options[0]];
  };
  const auto left_for = [&](const GroupShare& share) -> int& { return left[option_of(share).supply]; };
  const auto move_replicas = [&](GroupShare& share, int replicas) {
    share.replicas += replicas;
    left_for(share) -= replicas * option_of(share).shape.gpus();
  };
  for (std::vector<GroupShare>& shares : stages) {
    if (shares.empty()) return std::nullopt;
    move_replicas(shares[0], problem.replicas);
  }
  // Of all moves out of a short supply, the one that frees most per GPU that it takes elsewhere.
  for (int move = 0; move < kMostMoves; ++move) {
    GroupShare *from = nullptr, *to = nullptr;
    double best = 0;
    bool is_short = false;
    for (auto& shares : stages)
      for (GroupShare& a : shares) {
        if (a.replicas == 0 || left_for(a) >= 0) continue;
        is_short = true;
        for (GroupShare& b : shares) {
          if (&left_for(a) == &left_for(b) || left_for(b) < option_of(b).shape.gpus()) continue;
          const double gain = static_cast<double>(option_of(a).shape.gpus()) / option_of(b).shape.gpus();
          if (gain <= best) continue;
          best = gain;
          from = &a;
          to = &b;
        }
      }
    if (!is_short) return stages;
    if (from == nullptr) return std::nullopt;
    const int gpus = option_of(*from).shape.gpus();
    const int n = std::min(
        {from->replicas, (-left_for(*from) + gpus - 1) / gpus, left_for(*to) / option_of(*to).shape.gpus()});
    move_replicas(*from, -n);
    move_replicas(*to, n);
  }
  return std::nullopt;
}

}  // namespace sailor
