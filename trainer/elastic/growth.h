// Adds nodes to a running job beyond those of its submission, and releases them: queries the cluster
// periodically, chooses nodes (growth_choice.h) while training continues, requests exactly the nodes that pay
// from Slurm (helper_job.h), and releases nodes that the plan no longer uses.
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
#include <vector>

#include "planner/spec/snapshot.h"
#include "trainer/elastic/cluster_look.h"
#include "trainer/elastic/growth_choice.h"
#include "trainer/record/event_log.h"

namespace sailor {

class Growth {
 public:
  struct Options {
    double every_s = 0;  // interval of queries; 0 = the job never grows
    double spread = 0;   // intervals are longer by a random part of this, so that jobs do not ask together
    // The command that prints a snapshot of what the job could get now, or nothing (cluster_look.h).
    std::function<std::vector<std::string>()> look_command{};
    std::set<std::string> own_nodes{};  // of the job, which never gets more of their GPUs
    std::optional<int> most_nodes{};    // maximum nodes of the job
    std::optional<double> end_s{};      // end of the job's time limit, since 1970
    // Starts the keeper of a helper job as a child of this process.
    std::function<pid_t(const SnapshotNode& node)> start_keeper{};
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
  void tick(const Training& training, const Replanner& replanner, double now_s);
  // A child of this process has ended. If it was the keeper of a node that had joined, returns that node,
  // which is lost. Call release() for nodes that are lost in other ways.
  std::optional<std::string> child_ended(pid_t child, int wait_status, double now_s);
  // The agent of a node has joined. Returns the node with the GPUs to use, if it is one of the helpers.
  std::optional<SnapshotNode> came(const std::string& node, double now_s);

  // Whether the node was requested; it may not have joined yet.
  bool holds(const std::string& node) const { return helpers_.contains(node); }
  // A query runs, or the choice that follows it: the next calls of tick() may request nodes.
  bool undecided() const { return look_.under_way() || seen_ || answer_.valid(); }
  // Some nodes will join soon: changes of plan wait for them.
  bool awaits(double now_s) const;
  // Nodes that joined at least `for_s` ago and are not in `used`.
  std::vector<std::string> idle(const std::set<std::string>& used, double for_s, double now_s) const;
  void release(const std::string& node, const std::string& why, double now_s);
  // Releases all nodes, because the job ends.
  void release_all();

 private:
  struct Helper {
    SnapshotNode node;  // its free GPUs are the ones to use
    pid_t keeper = -1;
    double asked_s = 0;
    std::optional<double> came_s{};
    bool released = false;
  };

  void choose(const Training& training, const Replanner& replanner, double now_s);
  void take(const GrowthAnswer& answer, double now_s);
  std::vector<SnapshotNode> candidates(double now_s) const;
  double interval_s();

  const Options options_;
  EventLog& events_;
  const std::string log_;
  const std::function<void(const std::string&)> say_;
  ClusterLook look_;
  std::minstd_rand random_{std::random_device()()};
  double next_look_s_ = 0;
  std::optional<Snapshot> seen_;  // not yet evaluated
  std::string answered_;          // the last question, which is not asked again
  std::string said_;              // last reported reason against growing
  std::future<GrowthAnswer> answer_;
  double asked_iteration_s_ = 0;
  std::map<std::string, Helper> helpers_;       // by node
  std::map<std::string, double> not_before_s_;  // of refused or released nodes
};

}  // namespace sailor
