#include "tests/bench/queue/study_cluster.h"

#include <algorithm>
#include <set>

#include "planner/scheduler/node_returns.h"
#include "planner/scheduler/simulated_scheduler.h"

namespace sailor::bench {
namespace {

SimulatedSite site_of(const std::vector<NodeKind>& kinds, int64_t start_s) {
  SimulatedSite site;
  site.partitions.push_back({"all", {}});
  site.partitions.front().most_limit_s = kLongestLimit_s;
  site.start_s = start_s;
  for (const NodeKind& kind : kinds)
    for (const std::string& name : kind.names) {
      site.nodes.push_back({.name = name, .gpu_type = kind.gpu_type, .gpus = kind.gpus});
      site.partitions.front().nodes.push_back(name);
    }
  return site;
}

}  // namespace

StudyCluster::StudyCluster(const Snapshot& nodes, const std::vector<NodeKind>& kinds, int64_t start_s)
    : cluster_file_(nodes), kinds_(kinds), cluster_(site_of(kinds, start_s)) {
  for (const SnapshotNode& node : nodes.nodes) {
    SnapshotNode& known = nodes_[node.name] = node;
    known.host.gres = "gpu:" + node.gpu_type;  // jobs ask for GPUs of this type
  }
}

std::string StudyCluster::submit(const JobRequest& request, std::optional<int64_t> takes_s) {
  const std::string id = cluster_.submit(request, {.takes_s = takes_s, .fails = false});
  requests_[std::stoll(id)] = request;
  return id;
}

std::string StudyCluster::submit_helper(const HelperRequest& request) {
  const std::string id = SimulatedScheduler(cluster_).submit_helper(request);
  requests_[std::stoll(id)] = {.gpu_type = request.gres.substr(request.gres.find(':') + 1),
                               .time_limit_s = static_cast<int>(*request.end_s - now_s()),
                               .nice = request.after_others ? 1 : 0};
  return id;
}

std::vector<std::string> StudyCluster::idle_for(int64_t length_s, int nice) const {
  std::vector<std::string> idle;
  for (const NodeInfo& node : cluster_.nodes()) {
    if (node.in_use) continue;
    const JobRequest request{
        .node_names = {node.name}, .time_limit_s = static_cast<int>(length_s), .nice = nice};
    if (cluster_.could_start(request) == cluster_.now_s()) idle.push_back(node.name);
  }
  return idle;
}

Snapshot StudyCluster::only(const std::vector<std::string>& names) const {
  Snapshot nodes = cluster_file_;
  nodes.nodes.clear();
  for (const std::string& name : names) nodes.nodes.push_back(nodes_.at(name));
  return nodes;
}

std::vector<std::string> StudyCluster::names_for(const JobRequest& request) const {
  if (!request.node_names.empty()) return request.node_names;
  for (const NodeKind& kind : kinds_)
    if (kind.gpu_type == request.gpu_type) return kind.names;
  return {};
}

void StudyCluster::forget_ended() {
  std::erase_if(requests_, [&](const auto& one) {
    const JobState state = cluster_.find_job(std::to_string(one.first))->state;
    return state != JobState::pending && state != JobState::running;
  });
}

Snapshot StudyCluster::view(const std::vector<std::string>& idle) {
  forget_ended();
  Snapshot view = only(idle);
  view.time_s = now_s();
  std::map<std::string, double> free_in_s;
  for (const bool with_nice : {false, true})  // the queue is in its order
    for (const auto& [id, request] : requests_) {
      if ((request.nice > 0) != with_nice) continue;
      const QueuedJob job = *cluster_.find_job(std::to_string(id));
      if (job.state == JobState::running) {
        for (const std::string& name : job.nodes) free_in_s[name] = static_cast<double>(*job.end_s - now_s());
        continue;
      }
      WaitingJob waiting{
          .nodes = request.node_names.empty() ? request.nodes : static_cast<int>(request.node_names.size()),
          .names = names_for(request),
          .limit_s = *request.time_limit_s};
      if (job.start_s) waiting.start_in_s = static_cast<double>(*job.start_s - now_s());
      view.queue.push_back(std::move(waiting));
    }
  for (const auto& [name, node] : nodes_)
    if (std::find(idle.begin(), idle.end(), name) == idle.end())
      view.busy.push_back({node, "in use", free_in_s[name]});
  return view;
}

std::vector<WantedNode> StudyCluster::wanted_of(const std::vector<std::string>& helpers) {
  std::set<std::string> held, busy;
  for (const std::string& id : helpers) {
    const QueuedJob helper = *cluster_.find_job(id);
    if (helper.state == JobState::running) held.insert(helper.nodes.begin(), helper.nodes.end());
  }
  if (held.empty()) return {};
  for (const NodeInfo& node : cluster_.nodes())
    if (node.in_use && !held.contains(node.name)) busy.insert(node.name);
  forget_ended();
  NodeReturns returns;
  std::vector<WantedNode> wanted;
  for (const auto& [id, request] : requests_) {
    const QueuedJob job = *cluster_.find_job(std::to_string(id));
    if (job.state != JobState::pending || request.nice > 0) continue;
    JobInWait::Part part{.nodes = static_cast<size_t>(request.nodes), .required = 0, .could = {}};
    if (!request.node_names.empty()) part.nodes = part.required = request.node_names.size();
    for (const std::string& name : names_for(request))
      part.could.push_back({name,
                            held.contains(name)   ? JobInWait::Use::helpers
                            : busy.contains(name) ? JobInWait::Use::others
                                                  : JobInWait::Use::free,
                            !request.node_names.empty()});
    JobInWait waiting{{std::move(part)}, *request.time_limit_s, {}};
    if (job.start_s) waiting.start_in_s = static_cast<double>(*job.start_s - now_s());
    for (const std::string& name : returns.wanted_by(waiting)) wanted.push_back({name, std::to_string(id)});
  }
  return wanted;
}

}  // namespace sailor::bench
