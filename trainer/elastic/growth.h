// Adds nodes to a running job beyond those of its submission, and releases them: queries the cluster
// periodically, chooses nodes (growth_choice.h) while training continues, submits a helper job (helper_job.h)
// for each node that pays, and releases nodes that the plan no longer uses.
//
// Helper jobs ask for a kind of node, not for its name, and wait in the scheduler's queue. For free nodes
// there may be several, which start at once or not at all. For nodes that are in use there is one for each
// kind that pays, at most kMostWaiting; they are withdrawn when they no longer pay, or when too little of the
// training is left. Besides, there is one for each node for which the job could have waited before its start,
// at most kMostInTurn at a time.
//
// A job that yields returns nodes on which waiting jobs of others would start, as long as it has a plan
// without them, and asks for others again later, after all other jobs.
//
// The owner uses the nodes (membership.h, generations.h): it starts ranks on them and changes the plan when
// they are ready. Used from the controller's thread; the choice runs in its own thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <future>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/queued_nodes.h"
#include "planner/spec/snapshot.h"
#include "trainer/elastic/cluster_look.h"
#include "trainer/elastic/growth_choice.h"
#include "trainer/record/event_log.h"

namespace sailor {

class Growth {
 public:
  static constexpr int kMostWaiting = 3, kMostInTurn = 16;

  // A node that a helper job is to get.
  struct Wish {
    SnapshotNode node;                  // or another one of its kind, unless `by_name`
    std::vector<std::string> not_on{};  // nodes that look the same to the scheduler, but are not
    bool by_name = false;               // the scheduler cannot tell the kind
    double least_s = 0;                 // shortest time that is useful
    bool in_turn = false;               // it waits like any job, also where others come first
  };
  struct Options {
    double every_s = 0;  // average time per request to the scheduler; 0 = the job never grows
    bool yields = false;
    double spread = 0;  // intervals are longer by a random part of this, so that jobs do not ask together
    // The command that prints a snapshot of what the job could get now, or nothing (cluster_look.h).
    std::function<std::vector<std::string>()> look_command{};
    std::function<Snapshot()> look{};  // instead of the command
    // Of the job at its start, which never gets more of their GPUs; but one that is wholly free is not of
    // the job any more: the scheduler took it when it failed.
    std::set<std::string> own_nodes{};
    std::optional<int> most_nodes{};  // maximum nodes of the job
    // Nodes for which the job could have waited: it asks for them at the first look, in its turn, and does
    // not return them to others.
    std::vector<QueuedNodes> queued{};
    std::optional<double> end_s{};  // end of the job's time limit, since 1970
    // Starts the keeper of a helper job as a child of this process; lets it end.
    std::function<pid_t(const Wish& wish)> start_keeper{};
    std::function<void(pid_t keeper)> end_keeper{};
    bool in_thread = true;              // the choice is made in its own thread
    std::function<double()> clock_s{};  // since 1970
  };
  // The state of undisturbed training: no change is in progress or pending.
  struct Training {
    Plan plan;
    std::vector<LiveGpu> gpus;
    size_t nodes = 0;  // number of nodes of these GPUs
    double iteration_s = 0;
    int64_t steps_left = 0;
    double change_s = 0;
  };

  // References outlive the object. `say` gets lines for the user; `log` is the log file of keepers, whose
  // last line is the reason of a refusal.
  Growth(Options options, EventLog& events, std::string log, std::function<void(const std::string&)> say);

  // Call often during undisturbed training.
  void tick(const Training& training, const GrowthPlanner& planner, double now_s);
  // A child of this process has ended. If it was the keeper of a node that had joined, returns that node,
  // which is lost. Call release() for nodes that are lost in other ways.
  std::optional<std::string> child_ended(pid_t child, int wait_status, double now_s);
  // An agent of this keeper's helper job has joined from a node. Returns the node with the GPUs to use, if
  // the job wants it.
  std::optional<SnapshotNode> came(const std::string& node, int64_t keeper, double now_s);
  // The keeper's helper job was given up; an agent that joins from it must end.
  bool gave_up(int64_t keeper) const;

  // Whether the node is one of the helpers that have joined.
  bool holds(const std::string& node) const;
  // A query runs, or the choice that follows it: the next calls of tick() may request nodes.
  bool undecided() const { return look_.under_way() || seen_ || answer_.valid(); }
  // Some nodes will join soon: changes of plan wait for them.
  bool awaits(double now_s) const;
  // Nodes that joined at least `for_s` ago and are not in `used`.
  std::vector<std::string> idle(const std::set<std::string>& used, double for_s, double now_s) const;
  // `useless`: the job does not ask for such a node again for a while.
  void release(const std::string& node, const std::string& why, bool useless, double now_s);
  // Releases all nodes and withdraws all requests, because the job ends.
  void release_all();

 private:
  struct Helper {
    SnapshotNode node;    // of the kind; once it has joined, itself. Its free GPUs are the ones to use
    bool at_once = true;  // such a node was free
    bool in_turn = false;
    double asked_s = 0;
    std::optional<double> came_s{};
    bool released = false;

    bool waits() const { return !came_s && !released; }
  };
  struct Rest {
    SnapshotNode node;
    bool kind;  // all of its kind
    double until_s;
  };

  std::optional<double> time_left_s() const;
  double window_s(const Training& training) const;
  void give_up_late_ones(const Training& training, double now_s);
  void find_own_nodes();
  void choose(const Training& training, const GrowthPlanner& planner, double now_s);
  std::vector<WantedNode> wanted_now() const;
  void take(const GrowthAnswer& answer, double now_s);
  void take_nodes(const GrowthAnswer& answer, double now_s);
  void take_waits(const GrowthAnswer& answer, double now_s);
  void queue_in_turn(const Training& training, double now_s);
  bool request(Helper helper);
  void withdraw(pid_t keeper, Helper& helper, const std::string& why);
  std::vector<SnapshotNode> free_ones(double now_s) const;
  std::vector<SnapshotNode> later_ones(double now_s) const;
  bool has_or_rests(const SnapshotNode& node, double now_s) const;
  int waiting() const;         // helper jobs that wait
  int waiting_longer() const;  // of them, those that count for kMostWaiting
  bool waits_for(const SnapshotNode& kind) const;
  Wish wish_for(const Helper& helper) const;
  double interval_s(double requests);

  const Options options_;
  EventLog& events_;
  const std::string log_;
  const std::function<void(const std::string&)> say_;
  ClusterLook look_;
  std::minstd_rand random_{std::random_device()()};
  double next_look_s_ = 0;
  std::vector<QueuedNodes> queued_;        // not yet asked for
  std::optional<Snapshot> seen_;           // not yet evaluated
  std::vector<SnapshotNode> known_;        // all nodes of the last snapshot
  std::set<std::string> own_;              // of options_.own_nodes, those that are still of the job
  std::string answered_;                   // the last question, which is not asked again
  std::vector<SnapshotNode> asked_later_;  // of the last question
  std::string said_;                       // last reported reason against growing
  std::future<GrowthAnswer> answer_;
  double asked_iteration_s_ = 0, least_s_ = 0;
  std::map<int64_t, Helper> helpers_;  // by keeper
  std::set<int64_t> former_;           // keepers of helpers that were given up
  std::vector<Rest> rests_;            // refused or released
};

}  // namespace sailor
