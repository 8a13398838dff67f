#include "planner/search/assignment/type_assignment.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace sailor {
namespace {

constexpr int kMostMoves = 64;

// Number of a supply: the GPUs of one type in one region.
class Supplies {
 public:
  explicit Supplies(const Resources& resources) : resources_(resources) {
    std::vector<bool> counted(resources.pools.size(), false);
    std::map<std::pair<std::string, std::string>, size_t> number;  // of region and type
    for (const Option& option : resources.options) {
      const auto [it, added] = number.try_emplace({option.region, option.gpu_type}, left.size());
      if (added) left.push_back(0);
      of_option_.push_back(it->second);
      if (!counted[option.pool]) left[it->second] += resources.free_gpus(option.pool);
      counted[option.pool] = true;
    }
  }
  size_t of(const GroupShare& share) const { return of_option_[share.options[0]]; }
  int tp(const GroupShare& share) const { return resources_.options[share.options[0]].tp; }
  void move(GroupShare& share, int replicas) {
    share.replicas += replicas;
    left[of(share)] -= replicas * tp(share);
  }

  std::vector<int> left;  // GPUs by supply

 private:
  const Resources& resources_;
  std::vector<size_t> of_option_;
};

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
  Supplies supplies(problem.costs.resources());
  for (std::vector<GroupShare>& shares : stages) {
    if (shares.empty()) return std::nullopt;
    supplies.move(shares[0], problem.replicas);
  }
  // Of all moves out of a short supply, the one that frees most per GPU that it takes elsewhere.
  for (int move = 0; move < kMostMoves; ++move) {
    GroupShare *from = nullptr, *to = nullptr;
    double best = 0;
    bool is_short = false;
    for (auto& shares : stages)
      for (GroupShare& a : shares) {
        if (a.replicas == 0 || supplies.left[supplies.of(a)] >= 0) continue;
        is_short = true;
        for (GroupShare& b : shares) {
          if (supplies.of(a) == supplies.of(b) || supplies.left[supplies.of(b)] < supplies.tp(b)) continue;
          const double gain = static_cast<double>(supplies.tp(a)) / supplies.tp(b);
          if (gain <= best) continue;
          best = gain;
          from = &a;
          to = &b;
        }
      }
    if (!is_short) return stages;
    if (from == nullptr) return std::nullopt;
    const int tp = supplies.tp(*from);
    const int n = std::min({from->replicas, (-supplies.left[supplies.of(*from)] + tp - 1) / tp,
                            supplies.left[supplies.of(*to)] / supplies.tp(*to)});
    supplies.move(*from, -n);
    supplies.move(*to, n);
  }
  return std::nullopt;
}

}  // namespace sailor
