// The processes of a job's ranks, working or spare, and the agents of its nodes. Pure bookkeeping without
// sockets or clock. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/control/control_message.h"

namespace sailor {

struct JobProcess {
  int id = 0;  // in the job, in the order of joining
  std::string peer;
  Hello hello;
  int rank = -1;  // in the generation in force; -1 = spare
  bool gone = false;

  // "rank 3 on n1 (pid 17)", or "spare process on n1 (pid 17)".
  std::string describe() const;
};

class Roster {
 public:
  // A rank's process has sent its hello. Returns its id, or nothing if the process is already known, or if it
  // joins after generation 1 and its GPU has a process that is not gone.
  std::optional<int> joined(const std::string& peer, const Hello& hello);
  void agent_joined(const std::string& peer, const Hello& hello);

  JobProcess& at(int id) { return processes_.at(static_cast<size_t>(id)); }
  const JobProcess& at(int id) const { return processes_.at(static_cast<size_t>(id)); }
  // Processes that are not gone.
  std::vector<int> alive() const;
  std::vector<int> alive_on(const std::string& node) const;
  // GPUs of the node that had a process and have none now, by their names in plans.
  std::vector<std::pair<std::string, int>> empty_gpus_on(const std::string& node) const;
  // The id of a process, gone or not; nothing if it is unknown.
  std::optional<int> find(const std::string& node, int64_t pid) const;
  std::optional<int> find_peer(const std::string& peer) const;
  // The process that has the rank in the generation in force, unless it is gone.
  std::optional<int> of_rank(int rank) const;

  // The node of this agent.
  std::optional<std::string> node_of_agent(const std::string& peer) const;
  // The node whose agent's Slurm step is this process on the controller's node.
  std::optional<std::string> node_of_step(int64_t step_pid) const;
  // Connection of the node's agent; nothing if it has none.
  std::optional<std::string> agent_of(const std::string& node) const;
  std::set<std::string> nodes_with_agent() const;
  void agent_gone(const std::string& node) { agents_.erase(node); }

  // Sets the processes of the generation in force, by rank; all others are spare.
  void assign(const std::vector<int>& ids_by_rank);

 private:
  struct Agent {
    std::string peer;
    int64_t step_pid = 0;
  };
  std::vector<JobProcess> processes_;    // by id
  std::map<std::string, Agent> agents_;  // by node
};

}  // namespace sailor
