#include "spank_plugin/slurm/wanted_nodes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/commands/command_lines.h"
#include "spank_plugin/slurm/node_use.h"
#include "spank_plugin/slurm/usable_nodes.h"

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
  explicit Allotment(const SlurmView& view) : view_(view), after_(view.nodes), usable_(view) {
    forget_job(after_, view.helper_shares);
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
      const std::optional<NodeNeeds> needs = usable_.needs_of(part, node);
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

  const SlurmView& view_;
  std::vector<SlurmNode> after_;  // without the helper jobs
  const UsableNodes usable_;
  std::set<std::string> taken_;  // by jobs that were considered
};

}  // namespace

std::vector<WantedNode> wanted_nodes(const SlurmView& view) {
  if (view.helper_shares.empty()) return {};
  return Allotment(view).collect();
}

}  // namespace sailor
