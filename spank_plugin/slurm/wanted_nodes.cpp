#include "spank_plugin/slurm/wanted_nodes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "planner/spec/error.h"
#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/commands/command_lines.h"
#include "spank_plugin/slurm/feature_expression.h"
#include "spank_plugin/slurm/live_cluster.h"
#include "spank_plugin/slurm/node_use.h"

namespace sailor {
namespace {

// All components of a job.
using WaitingParts = std::vector<const SlurmWaitingJob*>;

std::vector<WaitingParts> jobs_in_order(const std::vector<SlurmWaitingJob>& queue) {
  std::vector<WaitingParts> jobs;
  std::map<uint32_t, size_t> place;
  for (const SlurmWaitingJob& part : queue) {
    const auto [found, first] = place.emplace(part.job, jobs.size());
    if (first) jobs.emplace_back();
    jobs[found->second].push_back(&part);
  }
  return jobs;
}

// Would nodes alone let it start?
bool waits_for_nodes(const WaitingParts& parts) {
  const auto has = [&](auto condition) { return std::any_of(parts.begin(), parts.end(), condition); };
  return has([](const auto* part) { return part->reason == WaitReason::nodes; }) &&
         !has([](const auto* part) { return part->reason == WaitReason::other || part->in_reservation; });
}

// The nodes of one job.
struct Choice {
  std::set<std::string> nodes;
  std::vector<std::string> returned;  // those of them that helper jobs have now
  std::set<std::string> usable;       // whatever runs there
  bool starts = true;
};

class Allotment {
 public:
  explicit Allotment(const SlurmView& view) : view_(view), after_(view.nodes) {
    forget_job(after_, view.helper_shares);
    for (const SlurmPartition& partition : view.partitions) {
      for (const std::string& node : partition.nodes) partitions_of_[node].push_back(&partition);
    }
  }

  std::vector<WantedNode> collect() {
    std::vector<WantedNode> wanted;
    size_t considered = 0;
    for (const WaitingParts& parts : jobs_in_order(view_.queue)) {
      if (!waits_for_nodes(parts)) continue;
      if (++considered > kMostJobs) break;
      Choice choice;
      for (const SlurmWaitingJob* part : parts) add(*part, choice);
      const std::set<std::string>& kept = choice.starts ? choice.nodes : choice.usable;
      taken_.insert(kept.begin(), kept.end());
      // Helpers do not give way to helpers: two jobs would exchange their nodes forever.
      if (!choice.starts || is_helper_job_name(parts.front()->job_name)) continue;
      for (const std::string& node : choice.returned)
        wanted.push_back({node, std::to_string(parts.front()->job)});
    }
    return wanted;
  }

 private:
  static constexpr size_t kMostJobs = 200;

  // Chooses nodes that the part requires, then free ones, then those of helper jobs.
  void add(const SlurmWaitingJob& part, Choice& choice) const {
    std::vector<std::string> free, of_helpers;
    size_t required = 0;
    for (size_t i = 0; i < view_.nodes.size(); ++i) {
      const SlurmNode& node = view_.nodes[i];
      const std::optional<NodeNeeds> needs = needs_of(part, node);
      if (!needs) continue;
      choice.usable.insert(node.name);
      if (taken_.contains(node.name) || choice.nodes.contains(node.name)) continue;
      const bool is_free = !use_by_running_jobs(node, *needs);
      if (!is_free && use_by_running_jobs(after_[i], *needs)) continue;
      if (!contains(part.required, node.name)) {
        (is_free ? free : of_helpers).push_back(node.name);
        continue;
      }
      ++required;
      choice.nodes.insert(node.name);
      if (!is_free) choice.returned.push_back(node.name);
    }
    const auto nodes = static_cast<size_t>(part.nodes);
    size_t missing = nodes - std::min(required, nodes);
    for (; missing > 0 && !free.empty(); --missing, free.pop_back()) choice.nodes.insert(free.back());
    for (; missing > 0 && !of_helpers.empty(); --missing, of_helpers.pop_back()) {
      choice.nodes.insert(of_helpers.back());
      choice.returned.push_back(of_helpers.back());
    }
    choice.starts = choice.starts && missing == 0 && required == part.required.size();
  }

  // Nothing if the part can never use the node.
  std::optional<NodeNeeds> needs_of(const SlurmWaitingJob& part, const SlurmNode& node) const {
    const auto partitions = partitions_of_.find(node.name);
    if (partitions == partitions_of_.end() || state_obstacle(node.state)) return std::nullopt;
    if (contains(part.excluded, node.name) || !has_features(node, part.features)) return std::nullopt;
    for (const SlurmPartition* partition : partitions->second) {
      if (!contains(part.partitions, partition->name)) continue;
      NodeNeeds needs = part.needs;
      needs.whole = needs.whole || partition->whole_nodes;
      return has_gpus(node, needs) ? std::optional(needs) : std::nullopt;
    }
    return std::nullopt;
  }

  static bool has_features(const SlurmNode& node, const std::string& expression) {
    try {
      return expression.empty() || satisfies(node.features, expression);
    } catch (const InputError&) {  // a form about several nodes
      return false;
    }
  }

  // Even if all are in use.
  static bool has_gpus(const SlurmNode& node, const NodeNeeds& needs) {
    const std::vector<NodeGpus> gpus = gpus_of(node);
    return std::all_of(needs.gpus.begin(), needs.gpus.end(), [&](const auto& need) {
      return std::any_of(gpus.begin(), gpus.end(), [&](const NodeGpus& of_type) {
        return names_gpus(need.first, of_type) && of_type.count >= need.second;
      });
    });
  }

  const SlurmView& view_;
  std::vector<SlurmNode> after_;  // without the helper jobs
  std::map<std::string, std::vector<const SlurmPartition*>> partitions_of_;
  std::set<std::string> taken_;  // by jobs that were considered
};

}  // namespace

std::vector<WantedNode> wanted_nodes(const SlurmView& view) {
  if (view.helper_shares.empty()) return {};
  return Allotment(view).collect();
}

}  // namespace sailor
