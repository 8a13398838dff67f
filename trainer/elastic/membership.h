// Who belongs to a job, while it can do without some: learns who has come and who is lost, makes sure that
// who does not count any more is not there any more, and has processes started for GPUs that lost theirs, on
// nodes that came back and on nodes beyond the job's own. What that means for training is the owner's
// business.
//
// It writes events of processes and nodes (events.jsonl), and tells people of losses. Used from the
// controller's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
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
    std::string node{};  // the controller's own: there it does itself what agents do elsewhere
    // Starts a process that joins, on the controller's own node.
    std::function<pid_t(const StartProcess&)> start_process{};
    // Starts an agent on another node of the job, as a child of this process. Empty: there are no agents.
    std::function<pid_t(const std::string& node)> start_agent{};
  };
  // What the owner is told, within the call that brings it about; processes are Roster's ids.
  struct Owner {
    std::function<double()> now_s;                        // on any clock that does not go back
    std::function<void(const std::string& text)> say;     // a line for people
    std::function<void(int process)> joined;              // ready to be used
    std::function<void(const SnapshotNode& node)> grown;  // the job has another node
    std::function<void(int process, const std::string& why)> lost;
    // A process could not reach another one, `suspect` (-1 = none in particular).
    std::function<void(int process, int generation, const std::string& text, int suspect)> unreachable;
  };

  // What is given by reference outlives the object.
  Membership(Options options, Owner owner, ControlServer& server, Growth& growth, EventLog& events);

  void hello(const std::string& peer, const Hello& hello);
  void process_ended(const std::string& node, int64_t pid, int wait_status) override;
  void child_ended(int64_t pid, int wait_status) override;
  void unreachable(const std::string& peer, const Failure& failure) override;
  void peer_silent(const std::string& peer, double silence_s) override;
  void peer_dropped(const std::string& peer, const std::string& reason) override;
  void no_children() override {}  // whoever is started next is one

  // A process is out of the job: it is told to end, and killed.
  void drop(int process, const std::string& why);
  // A node is told to go within `grace_s`: no plan may use it. Returns whether that is news.
  bool leaving(const std::string& node, double grace_s);
  // Training runs without the nodes that go: what is there is told to end.
  void dismiss_leaving();
  // A node that Growth took is not used: its processes are spare, nobody misses them.
  void give_back(const std::string& node, const std::string& why);
  // To be called often: starts agents and processes that are due. `hurry`: nothing trains until one is there.
  void tick(bool hurry);
  // Nobody is started any more.
  void start_nobody() { starting_ = false; }
  // And who ends is no loss.
  void close();

  // The generation in force has these processes, by rank.
  void assign(const std::vector<int>& by_rank) { roster_.assign(by_rank); }

  const Roster& roster() const { return roster_; }
  // Processes that a plan may use.
  std::vector<int> usable() const;
  std::set<std::string> nodes_of(const std::vector<int>& processes) const;
  std::vector<LiveGpu> gpus_of(const std::vector<int>& processes) const;  // in order
  // By rank of a placed plan; nothing when a GPU of it has no usable process.
  std::optional<std::vector<int>> processes_of(const Plan& plan) const;
  // Some are about to come: a change of plan waits for them.
  bool others_come() const;

 private:
  void agent_joined(const std::string& peer, const Hello& hello);
  void lose(int process, const std::string& why, double silent_s);
  void lose_node(const std::string& node, const std::string& why, double silent_s);
  void end_process(int process);
  bool can_start_on(const std::string& node) const;
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
  std::set<std::string> leaving_;  // nodes
  bool starting_ = true, closed_ = false;
};

}  // namespace sailor
