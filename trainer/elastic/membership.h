// The members of an elastic job: tracks joined and lost processes, makes sure that removed processes end, and
// has processes started on GPUs that lost theirs, on nodes that returned and on additional nodes. The owner
// decides what this means for training.
//
// Writes events of processes and nodes (events.jsonl), and reports losses to the user. Used from the
// controller's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"
#include "trainer/control/control_server.h"
#include "trainer/elastic/growth.h"
#include "trainer/elastic/loss_signs.h"
#include "trainer/elastic/lost_nodes.h"
#include "trainer/elastic/process_starts.h"
#include "trainer/elastic/replanner.h"
#include "trainer/elastic/roster.h"
#include "trainer/record/event_log.h"

namespace sailor {

class Membership final : public LossSigns {
 public:
  struct Options {
    std::string node{};  // the controller's own, where the controller acts as the agent
    // Starts a process on the controller's own node, which joins the job.
    std::function<pid_t(const StartProcess&)> start_process{};
    // Starts an agent on another node of the job, as a child of this process. Empty = there are no agents.
    std::function<pid_t(const std::string& node)> start_agent{};
  };
  // Callbacks of the owner, made within the causing call. Processes are ids of Roster.
  struct Owner {
    std::function<double()> now_s;                        // any monotonic clock
    std::function<void(const std::string& text)> say;     // a line for the user
    std::function<void(int process)> joined;              // ready for use
    std::function<void(const SnapshotNode& node)> grown;  // the job has a new node
    std::function<void(int process, const std::string& why)> lost;
    // A process could not reach `suspect` (-1 = unknown).
    std::function<void(int process, int generation, const std::string& text, int suspect)> unreachable;
  };

  // References outlive the object.
  Membership(Options options, Owner owner, ControlServer& server, Growth& growth, EventLog& events);

  void hello(const std::string& peer, const Hello& hello);
  void process_ended(const std::string& node, int64_t pid, int wait_status) override;
  void child_ended(int64_t pid, int wait_status) override;
  void unreachable(const std::string& peer, const Failure& failure) override;
  void device_failed(const std::string& peer, const Failure& failure) override;
  void peer_silent(const std::string& peer, double silence_s) override;
  void peer_dropped(const std::string& peer, const std::string& reason) override;
  void no_children() override {}  // new ones can be started

  // Removes a process from the job: tells it to end, and has it killed.
  void drop(int process, const std::string& why);
  // A node must end within `grace_s`: plans must not use it. Returns whether this is new.
  bool leaving(const std::string& node, double grace_s);
  // Every node of the submission that has an agent is leaving.
  bool all_are_leaving() const;
  // Training runs without the leaving nodes: tells their processes to end.
  void dismiss_leaving();
  // Releases an unused node of Growth, whose processes are spare. Their end is not a loss. `useless`: as in
  // Growth::release().
  void give_back(const std::string& node, const std::string& why, bool useless);
  // Call often: starts agents and processes that are due. `hurry`: training waits for one of them.
  void tick(bool hurry);
  // From now on, starts no processes.
  void start_nobody() { starting_ = false; }
  // Also ignores ended processes from now on.
  void close();

  // The generation in force has these processes, by rank.
  void assign(const std::vector<int>& by_rank) { roster_.assign(by_rank); }

  const Roster& roster() const { return roster_; }
  // Processes that a plan may use.
  std::vector<int> usable() const;
  std::set<std::string> nodes_of(const std::vector<int>& processes) const;
  std::vector<LiveGpu> gpus_of(const std::vector<int>& processes) const;  // in order
  // By rank of a placed plan; nothing if a GPU of the plan has no usable process.
  std::optional<std::vector<int>> processes_of(const Plan& plan) const;
  // Some processes will join soon: changes of plan wait for them.
  bool others_come() const;

 private:
  void agent_joined(const std::string& peer, const Hello& hello);
  void lose(int process, const std::string& why, double silent_s);
  void lose_node(const std::string& node, const std::string& why, double silent_s);
  void end_process(int process);
  bool can_start(const StartProcess& what) const;
  void restart(const StartProcess& what);
  void start(const StartProcess& what);

  const Options options_;
  const Owner owner_;
  ControlServer& server_;
  Growth& growth_;
  EventLog& events_;
  Roster roster_;
  ProcessStarts starts_;
  LostNodes lost_nodes_;
  std::set<std::string> leaving_;                      // nodes
  std::set<std::pair<std::string, int>> failed_gpus_;  // place, GPU: never used again
  bool starting_ = true, closed_ = false;
};

}  // namespace sailor
