#include "trainer/elastic/membership.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/plan/rank_layout.h"
#include "planner/process/subprocess.h"
#include "trainer/elastic/generation_record.h"

namespace sailor {

Membership::Membership(Options options, Owner owner, ControlServer& server, Growth& growth, EventLog& events)
    : options_(std::move(options)),
      owner_(std::move(owner)),
      server_(server),
      growth_(growth),
      events_(events) {}

void Membership::hello(const std::string& peer, const Hello& hello) {
  if (hello.role == ControlRole::agent) return agent_joined(peer, hello);
  const std::optional<int> id = roster_.joined(peer, hello);
  if (!id) {
    events_.write("refused", {{"node", hello.node}, {"pid", hello.pid}, {"why", "its GPU has a process"}});
    return server_.drop(peer);
  }
  starts_.joined(hello.place, hello.gpu);
  owner_.joined(*id);
}

// A later agent belongs to a returned node or to an additional one.
void Membership::agent_joined(const std::string& peer, const Hello& hello) {
  const auto grown = closed_ ? std::nullopt : growth_.came(hello.node, hello.step_pid, owner_.now_s());
  if (!grown && growth_.gave_up(hello.step_pid)) return server_.send(peer, Stop{0, "it is not needed"});
  roster_.agent_joined(peer, hello);
  if (closed_) return;
  if (grown) {
    // The node may have been the job's before Slurm removed it because it was down.
    leaving_.erase(grown->name);
    lost_nodes_.back(grown->name);
    owner_.grown(*grown);
    for (const int gpu : grown->free_gpus) start({grown->name, grown->name, gpu});
  } else if (lost_nodes_.back(hello.node)) {
    events_.write("returned", {{"node", hello.node}});
    for (const auto& [place, gpu] : roster_.empty_gpus_on(hello.node)) start({hello.node, place, gpu});
  }
}

void Membership::process_ended(const std::string& node, int64_t pid, int wait_status) {
  const std::optional<int> id = roster_.find(node, pid);
  if (!id || closed_) return;
  const JobProcess& process = roster_.at(*id);
  lose(*id, describe_wait_status(wait_status), server_.silence_s(process.peer));
  restart({node, process.hello.place, process.hello.gpu});
}

void Membership::child_ended(int64_t pid, int wait_status) {
  if (const auto node = growth_.child_ended(static_cast<pid_t>(pid), wait_status, owner_.now_s())) {
    const std::string why = fmt::format("the helper job of {} has ended", *node);
    if (const auto agent = roster_.agent_of(*node)) server_.send(*agent, Stop{0, why});
    roster_.agent_gone(*node);
    for (const int id : roster_.alive_on(*node)) lose(id, why, 0);
    return;
  }
  lost_nodes_.child_ended(static_cast<pid_t>(pid), owner_.now_s());
  if (const auto node = roster_.node_of_step(pid))
    lose_node(*node,
              fmt::format("the Slurm step of the agent on {} {}", *node, describe_wait_status(wait_status)),
              0);
}

void Membership::unreachable(const std::string& peer, const Failure& failure) {
  const std::optional<int> id = roster_.find_peer(peer);
  if (!id || roster_.at(*id).gone) return;
  owner_.unreachable(*id, failure.generation, fmt::format("{}: {}", roster_.at(*id).describe(), failure.text),
                     roster_.of_rank(failure.lost_peer).value_or(-1));
}

// The process ends by itself: then its GPU gets another one, unless it failed.
void Membership::device_failed(const std::string& peer, const Failure& failure) {
  const std::optional<int> id = roster_.find_peer(peer);
  if (!id || roster_.at(*id).gone || closed_) return;
  const Hello hello = roster_.at(*id).hello;
  lose(*id, failure.text, 0);
  if (failure.gpu_usable) return;
  failed_gpus_.insert({hello.place, hello.gpu});
  events_.write("gpu_failed", {{"node", hello.place}, {"gpu", hello.gpu}, {"why", failure.text}});
  owner_.say(fmt::format("elastic: GPU {} of {} is not used again", hello.gpu, hello.place));
}

void Membership::peer_silent(const std::string& peer, double silence_s) {
  if (const auto node = roster_.node_of_agent(peer)) {
    server_.drop(peer);
    return lose_node(*node, fmt::format("no answer from its node for {:.1f} s", silence_s), silence_s);
  }
  const std::optional<int> id = roster_.find_peer(peer);
  if (!id || roster_.at(*id).gone) return;
  lose(*id, fmt::format("no answer for {:.1f} s", silence_s), silence_s);
  end_process(*id);
}

void Membership::peer_dropped(const std::string& peer, const std::string& reason) {
  events_.write("dropped", {{"why", reason}});
  if (const auto node = roster_.node_of_agent(peer)) lose_node(*node, reason, 0);
  const std::optional<int> id = roster_.find_peer(peer);
  if (!id || roster_.at(*id).gone) return;
  lose(*id, reason, 0);
  end_process(*id);
}

void Membership::drop(int process, const std::string& why) {
  const std::string peer = roster_.at(process).peer;
  const double silent_s = server_.silence_s(peer);
  server_.send(peer, Stop{1, why});
  lose(process, why, silent_s);
  end_process(process);
}

void Membership::lose(int process, const std::string& why, double silent_s) {
  JobProcess& one = roster_.at(process);
  if (one.gone || closed_) return;
  one.gone = true;
  server_.drop(one.peer);
  nlohmann::ordered_json details = identity(one);
  details["rank"] = one.rank;
  details["why"] = why;
  details["silent_s"] = rounded_s(silent_s);
  events_.write("lost", details);
  const std::string text = fmt::format("{}: {}", one.describe(), why);
  owner_.say("elastic: lost " + text);
  owner_.lost(process, text);
}

void Membership::lose_node(const std::string& node, const std::string& why, double silent_s) {
  if (closed_) return;
  roster_.agent_gone(node);
  if (growth_.holds(node)) {
    growth_.release(node, why, false, owner_.now_s());
  } else {
    lost_nodes_.lost(node, owner_.now_s());
  }
  for (const int id : roster_.alive_on(node)) lose(id, why, silent_s);
}

// Makes sure that a removed process ends.
void Membership::end_process(int process) {
  const Hello& hello = roster_.at(process).hello;
  if (const auto agent = roster_.agent_of(hello.node)) {
    server_.send(*agent, EndProcess{hello.node, hello.pid});
  } else if (hello.node == options_.node) {
    kill(static_cast<pid_t>(hello.pid), SIGKILL);
  }
}

bool Membership::can_start(const StartProcess& what) const {
  return (roster_.agent_of(what.node) || what.node == options_.node) && !leaving_.contains(what.node) &&
         !failed_gpus_.contains({what.place, what.gpu});
}

void Membership::restart(const StartProcess& what) {
  if (!starting_ || !can_start(what)) return;
  const double wait_s = starts_.wanted(what, owner_.now_s());
  if (wait_s <= 0) return start(what);
  const std::string why = "its processes end repeatedly";
  events_.write("restart_later",
                {{"node", what.place}, {"gpu", what.gpu}, {"in_s", rounded_s(wait_s)}, {"why", why}});
  owner_.say(
      fmt::format("elastic: GPU {} of {} is not used for {:.0f} s: {}", what.gpu, what.place, wait_s, why));
}

void Membership::start(const StartProcess& what) {
  if (failed_gpus_.contains({what.place, what.gpu})) return;
  if (const auto agent = roster_.agent_of(what.node)) {
    server_.send(*agent, what);
  } else {
    options_.start_process(what);
  }
  starts_.started(what, owner_.now_s());
  events_.write("restart", {{"node", what.place}, {"gpu", what.gpu}});
}

void Membership::tick(bool hurry) {
  if (!starting_) return;
  // The job keeps lost nodes: they are used again when they return, or if only their agent had died.
  if (options_.start_agent) {
    for (const std::string& node : lost_nodes_.due(owner_.now_s())) {
      if (!leaving_.contains(node)) lost_nodes_.starting(node, options_.start_agent(node));
    }
  }
  for (const StartProcess& what : starts_.never_came(owner_.now_s())) {
    events_.write("restart_failed", {{"node", what.place}, {"gpu", what.gpu}});
    restart(what);
  }
  for (const StartProcess& what : starts_.due(owner_.now_s(), hurry)) {
    if (can_start(what)) start(what);
  }
}

void Membership::close() {
  starting_ = false;
  closed_ = true;
}

bool Membership::leaving(const std::string& node, double grace_s) {
  if (!leaving_.insert(node).second) return false;
  events_.write("leaving", {{"node", node}, {"grace_s", grace_s}});
  owner_.say(fmt::format("elastic: {} leaves the job within {:.0f} s", node, grace_s));
  return true;
}

bool Membership::all_are_leaving() const {
  const std::set<std::string> nodes = roster_.nodes_with_agent();
  return std::all_of(nodes.begin(), nodes.end(), [this](const std::string& node) {
    return growth_.holds(node) || leaving_.contains(node);
  });
}

void Membership::dismiss_leaving() {
  for (const std::string& node : std::set<std::string>(leaving_)) {
    if (growth_.holds(node)) {
      give_back(node, "it was told to leave", false);
      leaving_.erase(node);  // it may come again
      continue;
    }
    for (const int id : roster_.alive_on(node))
      server_.send(roster_.at(id).peer, Stop{0, "its node is leaving the job"});
    if (const auto agent = roster_.agent_of(node))
      server_.send(*agent, Stop{0, "the node is leaving the job"});
  }
}

void Membership::give_back(const std::string& node, const std::string& why, bool useless) {
  for (const int id : roster_.alive_on(node)) {
    JobProcess& one = roster_.at(id);
    server_.send(one.peer, Stop{0, why});
    one.gone = true;
    owner_.lost(id, why);
  }
  if (const auto agent = roster_.agent_of(node)) server_.send(*agent, Stop{0, why});
  roster_.agent_gone(node);
  growth_.release(node, why, useless, owner_.now_s());
}

std::vector<int> Membership::usable() const {
  std::vector<int> ids;
  for (const int id : roster_.alive()) {
    if (!leaving_.contains(roster_.at(id).hello.node)) ids.push_back(id);
  }
  return ids;
}

std::set<std::string> Membership::nodes_of(const std::vector<int>& processes) const {
  std::set<std::string> nodes;
  for (const int id : processes) nodes.insert(roster_.at(id).hello.node);
  return nodes;
}

std::vector<LiveGpu> Membership::gpus_of(const std::vector<int>& processes) const {
  std::vector<LiveGpu> gpus;
  for (const int id : processes) gpus.push_back({roster_.at(id).hello.place, roster_.at(id).hello.gpu});
  std::sort(gpus.begin(), gpus.end());
  return gpus;
}

std::optional<std::vector<int>> Membership::processes_of(const Plan& plan) const {
  std::map<std::pair<std::string, int>, int> by_gpu;
  for (const int id : usable()) by_gpu[{roster_.at(id).hello.place, roster_.at(id).hello.gpu}] = id;
  std::vector<int> ids;
  const RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) {
    const auto it = by_gpu.find({slot.node, slot.gpu});
    if (it == by_gpu.end()) return std::nullopt;
    ids.push_back(it->second);
  }
  return ids;
}

// For the time that a process takes to start.
bool Membership::others_come() const {
  return growth_.awaits(owner_.now_s()) || starts_.any_expected(owner_.now_s());
}

}  // namespace sailor
