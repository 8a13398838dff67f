#include "trainer/elastic/roster.h"

#include <fmt/format.h>

namespace sailor {

std::string JobProcess::describe() const {
  const std::string what = rank < 0 ? "spare process" : fmt::format("rank {}", rank);
  return fmt::format("{} on {} (pid {})", what, hello.place.empty() ? hello.node : hello.place, hello.pid);
}

std::optional<int> Roster::joined(const std::string& peer, const Hello& hello) {
  for (const JobProcess& process : processes_) {
    const bool same = process.hello.node == hello.node && process.hello.pid == hello.pid &&
                      process.hello.start_ticks == hello.start_ticks;
    const bool same_gpu =
        hello.rank < 0 && process.hello.place == hello.place && process.hello.gpu == hello.gpu;
    if (same || (same_gpu && !process.gone)) return std::nullopt;
  }
  const int id = static_cast<int>(processes_.size());
  processes_.push_back({.id = id, .peer = peer, .hello = hello, .rank = hello.rank});
  return id;
}

void Roster::agent_joined(const std::string& peer, const Hello& hello) {
  agents_[hello.node] = {peer, hello.step_pid};
}

std::vector<int> Roster::alive() const {
  std::vector<int> ids;
  for (const JobProcess& process : processes_) {
    if (!process.gone) ids.push_back(process.id);
  }
  return ids;
}

std::vector<int> Roster::alive_on(const std::string& node) const {
  std::vector<int> ids;
  for (const JobProcess& process : processes_) {
    if (!process.gone && process.hello.node == node) ids.push_back(process.id);
  }
  return ids;
}

std::vector<std::pair<std::string, int>> Roster::empty_gpus_on(const std::string& node) const {
  std::map<std::pair<std::string, int>, bool> has_process;
  for (const JobProcess& process : processes_) {
    if (process.hello.node == node) has_process[{process.hello.place, process.hello.gpu}] |= !process.gone;
  }
  std::vector<std::pair<std::string, int>> gpus;
  for (const auto& [gpu, taken] : has_process) {
    if (!taken) gpus.push_back(gpu);
  }
  return gpus;
}

std::optional<int> Roster::find(const std::string& node, int64_t pid) const {
  // The system reuses pids: use the newest process.
  for (auto it = processes_.rbegin(); it != processes_.rend(); ++it) {
    if (it->hello.node == node && it->hello.pid == pid) return it->id;
  }
  return std::nullopt;
}

std::optional<int> Roster::find_peer(const std::string& peer) const {
  for (const JobProcess& process : processes_) {
    if (process.peer == peer) return process.id;
  }
  return std::nullopt;
}

std::optional<int> Roster::of_rank(int rank) const {
  for (const JobProcess& process : processes_) {
    if (rank >= 0 && process.rank == rank && !process.gone) return process.id;
  }
  return std::nullopt;
}

std::optional<std::string> Roster::node_of_agent(const std::string& peer) const {
  for (const auto& [node, agent] : agents_) {
    if (agent.peer == peer) return node;
  }
  return std::nullopt;
}

std::optional<std::string> Roster::node_of_step(int64_t step_pid) const {
  for (const auto& [node, agent] : agents_) {
    if (agent.step_pid == step_pid) return node;
  }
  return std::nullopt;
}

std::optional<std::string> Roster::agent_of(const std::string& node) const {
  auto it = agents_.find(node);
  if (it == agents_.end()) return std::nullopt;
  return it->second.peer;
}

std::set<std::string> Roster::nodes_with_agent() const {
  std::set<std::string> nodes;
  for (const auto& [node, agent] : agents_) nodes.insert(node);
  return nodes;
}

void Roster::assign(const std::vector<int>& ids_by_rank) {
  for (JobProcess& process : processes_) process.rank = -1;
  for (size_t rank = 0; rank < ids_by_rank.size(); ++rank)
    at(ids_by_rank[rank]).rank = static_cast<int>(rank);
}

}  // namespace sailor
