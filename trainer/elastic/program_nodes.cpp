#include "trainer/elastic/program_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/process/subprocess.h"
#include "trainer/elastic/generation_record.h"

namespace sailor {
namespace {

constexpr double kUnused_s = 15;  // before a helper node that no plan uses is released

}  // namespace

ProgramNodes::ProgramNodes(Owner owner, const Snapshot& plan_nodes, ControlServer& server, Growth& growth,
                           EventLog& events)
    : owner_(std::move(owner)), server_(server), growth_(growth), events_(events) {
  for (const SnapshotNode& node : plan_nodes.nodes) nodes_.emplace(node.name, node);
}

// As if they had been lost: an agent that does not come is started again.
void ProgramNodes::start_agents() {
  for (const auto& [name, node] : nodes_) {
    lost_nodes_.lost(name, owner_.now_s());
    lost_nodes_.starting(name, owner_.start_agent(name));
  }
}

void ProgramNodes::hello(const std::string& peer, const Hello& hello) {
  if (hello.role != ControlRole::agent) return server_.drop(peer);
  const auto grown = closed_ ? std::nullopt : growth_.came(hello.node, hello.step_pid, owner_.now_s());
  if (closed_ || (!grown && growth_.gave_up(hello.step_pid)) || (!grown && !nodes_.contains(hello.node)))
    return server_.send(peer, Stop{0, "it is not needed"});
  agents_[hello.node] = {peer, hello.step_pid};
  leaving_.erase(hello.node);
  lost_nodes_.back(hello.node);
  if (grown) {
    nodes_.insert_or_assign(grown->name, *grown);
    owner_.grown(*grown);
  } else if (!seen_.insert(hello.node).second) {
    events_.write("returned", {{"node", hello.node}});
  }
  owner_.joined(hello.node);
}

void ProgramNodes::child_ended(pid_t child, int wait_status) {
  if (const auto node = growth_.child_ended(child, wait_status, owner_.now_s())) {
    const std::string why = fmt::format("the helper job of {} has ended", *node);
    send(*node, Stop{0, why});
    return lose(*node, why, 0);
  }
  lost_nodes_.child_ended(child, owner_.now_s());
  const auto agent = std::find_if(agents_.begin(), agents_.end(),
                                  [&](const auto& one) { return one.second.step_pid == child; });
  if (agent != agents_.end())
    lose(std::string(agent->first),
         fmt::format("the step of its agent {}", describe_wait_status(wait_status)), 0);
}

void ProgramNodes::peer_gone(const std::string& peer, const std::string& why) {
  const std::optional<std::string> node = node_of(peer);
  const double silent_s = server_.silence_s(peer);
  server_.drop(peer);
  if (node) lose(*node, why, silent_s);
}

void ProgramNodes::drop(const std::string& node, const std::string& why) {
  send(node, Stop{1, why});
  lose(node, why, 0);
}

void ProgramNodes::lose(const std::string& node, const std::string& why, double silent_s) {
  agents_.erase(node);
  if (closed_) return;
  events_.write("lost", {{"node", node}, {"why", why}, {"silent_s", rounded_s(silent_s)}});
  owner_.say(fmt::format("elastic: lost {}: {}", node, why));
  if (growth_.holds(node)) {
    growth_.release(node, why, false, owner_.now_s());
  } else {
    lost_nodes_.lost(node, owner_.now_s());
  }
  owner_.lost(node, why);
}

bool ProgramNodes::leaving(const std::string& node, double grace_s) {
  if (closed_ || !leaving_.insert(node).second) return false;
  events_.write("leaving", {{"node", node}, {"grace_s", grace_s}});
  owner_.say(fmt::format("elastic: {} leaves the job within {:.0f} s", node, grace_s));
  return true;
}

bool ProgramNodes::all_are_leaving() const {
  return std::all_of(agents_.begin(), agents_.end(), [this](const auto& one) {
    return growth_.holds(one.first) || leaving_.contains(one.first);
  });
}

void ProgramNodes::give_back_idle(const std::set<std::string>& used) {
  for (const std::string& node : growth_.idle(used, kUnused_s, owner_.now_s())) {
    const std::string why = "the plan does not use it";
    send(node, Stop{0, why});
    agents_.erase(node);
    growth_.release(node, why, true, owner_.now_s());
  }
}

void ProgramNodes::tick() {
  if (closed_) return;
  for (const std::string& node : lost_nodes_.due(owner_.now_s()))
    if (!leaving_.contains(node)) lost_nodes_.starting(node, owner_.start_agent(node));
}

void ProgramNodes::send(const std::string& node, const ControlMessage& message) {
  if (const auto agent = agents_.find(node); agent != agents_.end())
    server_.send(agent->second.peer, message);
}

std::optional<std::string> ProgramNodes::node_of(const std::string& peer) const {
  for (const auto& [node, agent] : agents_)
    if (agent.peer == peer) return node;
  return std::nullopt;
}

std::set<std::string> ProgramNodes::usable() const {
  std::set<std::string> names;
  for (const auto& [node, agent] : agents_)
    if (!leaving_.contains(node)) names.insert(node);
  return names;
}

std::vector<LiveGpu> ProgramNodes::gpus() const {
  std::vector<LiveGpu> gpus;
  for (const std::string& name : usable())
    for (const int gpu : nodes_.at(name).free_gpus) gpus.push_back({name, gpu});
  std::sort(gpus.begin(), gpus.end());
  return gpus;
}

}  // namespace sailor
