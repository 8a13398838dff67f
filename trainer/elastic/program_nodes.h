// The nodes of an elastic job that runs another trainer's program, and their agents: starts agents, also
// again on lost nodes, and tracks which nodes a plan may use. Additional nodes come from Growth.
//
// Writes events of nodes (events.jsonl), and reports losses to the user. Used from the controller's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/spec/snapshot.h"
#include "trainer/control/control_server.h"
#include "trainer/elastic/growth.h"
#include "trainer/elastic/lost_nodes.h"
#include "trainer/record/event_log.h"

namespace sailor {

class ProgramNodes {
 public:
  // Callbacks of the owner, made within the causing call.
  struct Owner {
    std::function<double()> now_s;                              // any monotonic clock
    std::function<void(const std::string& text)> say;           // a line for the user
    std::function<pid_t(const std::string& node)> start_agent;  // as a child of this process
    std::function<void(const std::string& node)> joined;
    std::function<void(const SnapshotNode& node)> grown;  // before joined: the job has a new node
    std::function<void(const std::string& node, const std::string& why)> lost;
  };

  // References outlive the object. `plan_nodes`: nodes of the job and their GPUs for plans.
  ProgramNodes(Owner owner, const Snapshot& plan_nodes, ControlServer& server, Growth& growth,
               EventLog& events);

  void start_agents();
  void hello(const std::string& peer, const Hello& hello);
  // A child of this process has ended: the step of an agent, or the keeper of a helper job.
  void child_ended(pid_t child, int wait_status);
  // Nothing has been heard from an agent, or it sent an invalid message.
  void peer_gone(const std::string& peer, const std::string& why);
  // The node must not be used any more: its agent is told to end.
  void drop(const std::string& node, const std::string& why);
  // A node must end within `grace_s`: plans must not use it. Returns whether this is new.
  bool leaving(const std::string& node, double grace_s);
  // Every node of the submission that has an agent is leaving.
  bool all_are_leaving() const;
  // Releases nodes of Growth that are not in `used`, after a while.
  void give_back_idle(const std::set<std::string>& used);
  // Call often: starts agents that are due.
  void tick();
  // From now on, starts no agents and ignores losses.
  void close() { closed_ = true; }

  // Does nothing if the node has no agent.
  void send(const std::string& node, const ControlMessage& message);
  std::optional<std::string> node_of(const std::string& peer) const;
  // Nodes that a plan may use, and their GPUs.
  std::set<std::string> usable() const;
  std::vector<LiveGpu> gpus() const;

 private:
  struct Agent {
    std::string peer;
    int64_t step_pid = 0;
  };

  void lose(const std::string& node, const std::string& why, double silent_s);

  const Owner owner_;
  std::map<std::string, SnapshotNode> nodes_;
  ControlServer& server_;
  Growth& growth_;
  EventLog& events_;
  LostNodes lost_nodes_;
  std::map<std::string, Agent> agents_;  // by node
  std::set<std::string> seen_;           // nodes that have ever had an agent
  std::set<std::string> leaving_;
  bool closed_ = false;
};

}  // namespace sailor
