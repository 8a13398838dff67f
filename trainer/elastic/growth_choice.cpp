#include "trainer/elastic/growth_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "planner/plan/rank_layout.h"

namespace sailor {
namespace {

constexpr double kGrowthWorth = 0.02;
constexpr size_t kMostTries = 16;  // nodes for which a plan without them is tried

// The GPUs of these nodes that the plan uses.
std::map<std::string, std::set<int>> used_of(const Plan& plan, const std::vector<SnapshotNode>& nodes) {
  std::map<std::string, std::set<int>> used;
  const RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) {
    const bool among = std::any_of(nodes.begin(), nodes.end(),
                                   [&](const SnapshotNode& node) { return node.name == slot.node; });
    if (among) used[slot.node].insert(slot.gpu);
  }
  return used;
}

// A plan with some of the free nodes, and its prediction.
struct Grown {
  Plan plan;
  PlanPrediction prediction;
  std::map<std::string, std::set<int>> used;  // of the free nodes

  // To be minimized.
  double value(Objective objective) const { return objective.value(prediction.figures()); }
};

std::optional<Grown> plan_with(const GrowthQuestion& question, const std::vector<SnapshotNode>& nodes) {
  std::optional<Plan> found = question.planner->plan_with(question.gpus, nodes, question.plan);
  if (!found || !found->prediction) return std::nullopt;
  Grown grown{std::move(*found), {}, {}};
  grown.prediction = *grown.plan.prediction;
  grown.used = used_of(grown.plan, nodes);
  return grown;
}

std::vector<SnapshotNode> only(const std::vector<SnapshotNode>& nodes,
                               const std::map<std::string, std::set<int>>& used) {
  std::vector<SnapshotNode> result;
  for (const SnapshotNode& node : nodes) {
    if (used.contains(node.name)) result.push_back(node);
  }
  return result;
}

// Drops nodes without which the plan is hardly worse, the least used first.
Grown without_idlers(const GrowthQuestion& question, Grown grown, const std::vector<SnapshotNode>& nodes) {
  const Objective objective = question.planner->objective();
  const double limit = grown.value(objective) * (1 + kGrowthWorth);
  std::vector<std::pair<size_t, std::string>> by_use;
  for (const auto& [node, gpus] : grown.used) by_use.emplace_back(gpus.size(), node);
  std::sort(by_use.begin(), by_use.end());
  if (by_use.size() > kMostTries) by_use.resize(kMostTries);
  std::vector<SnapshotNode> kept = only(nodes, grown.used);
  for (const auto& [count, name] : by_use) {
    const std::string dropped = name;
    std::vector<SnapshotNode> fewer = kept;
    std::erase_if(fewer, [&](const SnapshotNode& node) { return node.name == dropped; });
    if (fewer.size() == kept.size()) continue;  // an earlier plan has dropped it already
    std::optional<Grown> other = plan_with(question, fewer);
    if (!other || other->value(objective) > limit) continue;
    grown = std::move(*other);
    kept = only(fewer, grown.used);
  }
  return grown;
}

// Limits the number of nodes to those that the plan uses most.
std::vector<SnapshotNode> most_used(const Grown& grown, std::vector<SnapshotNode> nodes, int most) {
  nodes = only(nodes, grown.used);
  std::stable_sort(nodes.begin(), nodes.end(), [&](const SnapshotNode& a, const SnapshotNode& b) {
    return grown.used.at(a.name).size() > grown.used.at(b.name).size();
  });
  if (static_cast<int>(nodes.size()) > most) nodes.resize(static_cast<size_t>(std::max(0, most)));
  return nodes;
}

// The node with the GPUs that the plan uses. Of a shared one the job requests only these, which are then
// numbered from 0, and their part of the free processors and memory.
SnapshotNode to_request(SnapshotNode node, const std::set<int>& used) {
  const auto free = static_cast<int64_t>(node.free_gpus.size());
  std::erase_if(node.free_gpus, [&](int gpu) { return !used.contains(gpu); });
  if (!node.shared || node.free_gpus.empty()) return node;
  const auto taken = static_cast<int64_t>(node.free_gpus.size());
  node.host.cpus = static_cast<int>(node.host.cpus * taken / free);
  node.host.memory_bytes = node.host.memory_bytes / free * taken;
  std::iota(node.free_gpus.begin(), node.free_gpus.end(), 0);
  return node;
}

std::string names(const std::map<std::string, std::set<int>>& used) {
  std::string text;
  for (const auto& [node, gpus] : used) text += (text.empty() ? "" : ", ") + node;
  return text;
}

GrowthAnswer none(const std::string& why) {
  return {.nodes = {}, .iteration_s = 0, .why = why};
}

}  // namespace

std::vector<SnapshotNode> within_limits(const std::vector<SnapshotNode>& nodes,
                                        std::vector<GpuLimit> limits) {
  std::vector<SnapshotNode> allowed;
  for (SnapshotNode node : nodes) {
    const auto concerns = [&](const GpuLimit& limit) {
      return limit.gpu_type.empty() || limit.gpu_type == node.gpu_type;
    };
    size_t gpus = node.free_gpus.size();
    for (const GpuLimit& limit : limits)
      if (concerns(limit)) gpus = std::min(gpus, static_cast<size_t>(limit.gpus));
    if (gpus == 0 || (!node.shared && gpus < node.free_gpus.size())) continue;
    for (GpuLimit& limit : limits)
      if (concerns(limit)) limit.gpus -= static_cast<int>(gpus);
    node.free_gpus.resize(gpus);
    allowed.push_back(std::move(node));
  }
  return allowed;
}

bool pays_in_time(double now_s, double then_s, double change_s, int64_t steps_left,
                  std::optional<double> time_left_s) {
  double window_s = static_cast<double>(steps_left) * now_s;
  if (time_left_s) window_s = std::min(window_s, *time_left_s);
  if (now_s <= 0 || then_s <= 0 || window_s <= change_s) return false;
  return (window_s - change_s) / then_s > (1 + kGrowthWorth) * window_s / now_s;
}

namespace {

// Takes these nodes together, or some of them.
GrowthAnswer choose_among(const GrowthQuestion& question, const std::vector<SnapshotNode>& nodes,
                          const PlanPrediction& now) {
  std::optional<Grown> grown = plan_with(question, nodes);
  if (question.most_new && grown && static_cast<int>(grown->used.size()) > *question.most_new)
    grown = plan_with(question, most_used(*grown, nodes, *question.most_new));
  if (!grown) return none("no plan was found with the free nodes");
  if (grown->used.empty()) return none("the best plan uses none of the free nodes");
  grown = without_idlers(question, std::move(*grown), nodes);
  if (grown->used.empty()) return none("plans without the free nodes are as good");

  GrowthAnswer answer;
  // Assumes the same ratio of measured to predicted time before and after the change.
  answer.iteration_s = question.iteration_s * grown->prediction.iteration_s / now.iteration_s;
  answer.why = fmt::format("with {}: {:.4g} s per iteration instead of {:.4g}", names(grown->used),
                           answer.iteration_s, question.iteration_s);
  const Objective objective = question.planner->objective();
  answer.value = grown->value(objective);
  const bool pays = objective.expense()
                        ? answer.value < objective.value(now.figures()) * (1 - kGrowthWorth)
                        : pays_in_time(question.iteration_s, answer.iteration_s, question.change_s,
                                       question.steps_left, question.time_left_s);
  if (!pays) return answer;
  for (const SnapshotNode& node : only(nodes, grown->used)) {
    SnapshotNode wanted = to_request(node, grown->used.at(node.name));
    const bool has_it = std::any_of(answer.nodes.begin(), answer.nodes.end(),
                                    [&](const SnapshotNode& other) { return other.name == node.name; });
    // Of a node with several types a helper job gets one.
    if (!has_it && !wanted.free_gpus.empty()) answer.nodes.push_back(std::move(wanted));
  }
  return answer;
}

// Of the wanted nodes: all, if the job has a plan without them and goes on for a while.
std::vector<WantedNode> to_return(const GrowthQuestion& question) {
  constexpr double kChanges = 2;
  if (static_cast<double>(question.steps_left) * question.iteration_s < kChanges * question.change_s)
    return {};
  GrowthQuestion without = question;
  std::erase_if(without.gpus, [&](const LiveGpu& gpu) {
    return std::any_of(question.wanted.begin(), question.wanted.end(),
                       [&](const WantedNode& wanted) { return wanted.node == gpu.node; });
  });
  return plan_with(without, {}) ? question.wanted : std::vector<WantedNode>();
}

std::vector<SnapshotNode> usable(const GrowthQuestion& question, const std::vector<SnapshotNode>& nodes) {
  std::vector<SnapshotNode> result;
  for (const SnapshotNode& node : nodes) {
    if (question.planner->could_use(node)) result.push_back(node);
  }
  return result;
}

}  // namespace

GrowthAnswer choose_growth(const GrowthQuestion& question) {
  if (!question.wanted.empty()) {
    GrowthAnswer answer;
    answer.returns = to_return(question);
    if (!answer.returns.empty()) return answer;
  }
  const std::vector<SnapshotNode> free = usable(question, question.free);
  const std::vector<SnapshotNode> later = usable(question, question.later);
  if (free.empty() && later.empty()) return none("no free node can be used");
  const std::optional<PlanPrediction> now = question.planner->prediction_of(question.plan);
  if (!now) return none("there is no prediction for the plan in force");
  GrowthAnswer answer;
  if (!free.empty()) answer = choose_among(question, free, *now);
  if (!answer.nodes.empty()) return answer;
  for (const SnapshotNode& node : later) {
    GrowthAnswer one = choose_among(question, {node}, *now);
    if (one.nodes.empty()) {
      if (answer.why.empty()) answer.why = one.why;
      continue;
    }
    one.why = fmt::format("{:.4g} s per iteration instead of {:.4g}", one.iteration_s, question.iteration_s);
    answer.waits.push_back({std::move(one.nodes.front()), one.iteration_s, one.value, std::move(one.why)});
  }
  std::stable_sort(answer.waits.begin(), answer.waits.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  return answer;
}

double least_use_s(double change_s) {
  constexpr double kLeast_s = 300, kChanges = 20;
  return std::max(kLeast_s, kChanges * change_s);
}

bool same_kind(const SnapshotNode& a, const SnapshotNode& b) {
  return a.gpu_type == b.gpu_type && a.gpus == b.gpus && a.zone == b.zone && a.region == b.region &&
         a.partition == b.partition && a.host.gres == b.host.gres && a.shared == b.shared &&
         a.spot == b.spot && a.billing_units == b.billing_units;
}

std::string describe_kind(const SnapshotNode& node) {
  return fmt::format("{} {}{}", node.free_gpus.size(), node.gpu_type,
                     node.partition.empty() ? "" : fmt::format(" ({})", node.partition));
}

}  // namespace sailor
