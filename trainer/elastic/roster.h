// Who belongs to a job: the processes of its ranks, working or spare, and the agents of its nodes. Pure
// bookkeeping: hellos and ends in, answers out; no sockets, no clock. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/control/control_message.h"

namespace sailor {

struct JobProcess {
  int id = 0;  // within the job, in the order of joining
  std::string peer;
  Hello hello;
  int rank = -1;  // of the generation in force; -1 = spare
  bool gone = false;

  // "rank 3 on n1 (pid 17)", or "spare process on n1 (pid 17)".
  std::string describe() const;
};

class Roster {
 public:
  // A process of a rank has said hello. Returns its id, or nothing when that process is known already, or
  // comes later than generation 1 and its GPU has a process that is not gone.
  std::optional<int> joined(const std::string& peer, const Hello& hello);
  void agent_joined(const std::string& peer, const Hello& hello);

  JobProcess& at(int id) { return processes_.at(static_cast<size_t>(id)); }
  const JobProcess& at(int id) const { return processes_.at(static_cast<size_t>(id)); }
  // That are not gone.
  std::vector<int> alive() const;
  std::vector<int> alive_on(const std::string& node) const;
  // GPUs of the node that had a process once, and have none now: as plans name them.
  std::vector<std::pair<std::string, int>> empty_gpus_on(const std::string& node) const;
  // Of the process, gone or not; nothing when it is unknown.
  std::optional<int> find(const std::string& node, int64_t pid) const;
  std::optional<int> find_peer(const std::string& peer) const;
  // The process that has the rank in the generation in force, unless it is gone.
  std::optional<int> of_rank(int rank) const;

  // The node whose agent that is.
  std::optional<std::string> node_of_agent(const std::string& peer) const;
  // The node whose agent's Slurm step is held by that process of the controller's node.
  std::optional<std::string> node_of_step(int64_t step_pid) const;
  // Connection of the node's agent; nothing when it has none.
  std::optional<std::string> agent_of(const std::string& node) const;
  void agent_gone(const std::string& node) { agents_.erase(node); }

  // The generation in force has these processes, by rank; all others are spare.
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
