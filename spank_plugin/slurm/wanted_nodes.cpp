#include "spank_plugin/slurm/wanted_nodes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "planner/scheduler/node_returns.h"
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

class Allotment {
 public:
  explicit Allotment(const SlurmView& view) : view_(view), after_(view.nodes), usable_(view) {
    forget_job(after_, view.helper_shares);
  }

  std::vector<WantedNode> collect() {
    NodeReturns returns;
    std::vector<WantedNode> wanted;
    size_t considered = 0;
    for (const WaitingParts& parts : jobs_in_order(view_.queue)) {
      if (!waits_for_nodes(parts)) continue;
      if (++considered > kMostJobs) break;
      JobInWait job{.parts = {}, .limit_s = {}, .start_in_s = {}};
      for (const SlurmWaitingJob* part : parts) job.parts.push_back(part_of(*part));
      if (parts.size() == 1) {
        job.limit_s = parts.front()->limit_s;
        if (parts.front()->start) job.start_in_s = static_cast<double>(*parts.front()->start - view_.now);
      }
      const std::vector<std::string> nodes = returns.wanted_by(job);
      // Helpers do not give way to helpers: two jobs would exchange their nodes forever.
      if (is_helper_job_name(parts.front()->job_name)) continue;
      for (const std::string& node : nodes) wanted.push_back({node, std::to_string(parts.front()->job)});
    }
    return wanted;
  }

 private:
  static constexpr size_t kMostJobs = 200;

  JobInWait::Part part_of(const SlurmWaitingJob& part) const {
    JobInWait::Part result{
        .nodes = static_cast<size_t>(part.nodes), .required = part.required.size(), .could = {}};
    for (size_t i = 0; i < view_.nodes.size(); ++i) {
      const SlurmNode& node = view_.nodes[i];
      const std::optional<NodeNeeds> needs = usable_.needs_of(part, node);
      if (!needs) continue;
      const auto use = !use_by_running_jobs(node, *needs)        ? JobInWait::Use::free
                       : !use_by_running_jobs(after_[i], *needs) ? JobInWait::Use::helpers
                                                                 : JobInWait::Use::others;
      result.could.push_back({node.name, use, contains(part.required, node.name)});
    }
    return result;
  }

  const SlurmView& view_;
  std::vector<SlurmNode> after_;  // without the helper jobs
  const UsableNodes usable_;
};

}  // namespace

std::vector<WantedNode> wanted_nodes(const SlurmView& view) {
  if (view.helper_shares.empty()) return {};
  return Allotment(view).collect();
}

}  // namespace sailor
