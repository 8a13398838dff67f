// A running job takes nodes beyond those that it was submitted with, and gives them back: looks at the
// cluster now and then, chooses (growth_choice.h) without stopping anything, asks Slurm for exactly the nodes
// that pay (helper_job.h), and releases those that the plan does not use any more.
//
// What is done with a node that is there is the owner's business (membership.h, generations.h): ranks are
// started on it, and the plan changes when they are ready. Used from the controller's thread; choosing has
// one of its own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <future>
#include <map>
#include <optional>
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
    double every_s = 0;  // from look to look; 0 = the job never grows
    // Prints a snapshot of what the job could get now (cluster_look.h).
    std::function<std::vector<std::string>()> look_command{};
    std::optional<int> most_nodes{};  // that the job may have in all
    std::optional<double> end_s{};    // when the job reaches its time limit, since 1970
    // Starts the keeper of a helper job as a child of this process.
    std::function<pid_t(const SnapshotNode& node)> start_keeper{};
  };
  // What the owner tells when training goes its way: no change is going on, or about to.
  struct Training {
    Plan plan;
    std::vector<LiveGpu> gpus;
    size_t nodes = 0;  // that these are on
    double iteration_s = 0;
    int64_t steps_left = 0;
    double change_s = 0;
  };

  // What is given by reference outlives the object. `say` is told lines for people, `log` is the file of a
  // program that fails.
  Growth(Options options, EventLog& events, std::string log, std::function<void(const std::string&)> say);

  // To be called often while training goes its way.
  void tick(const Training& training, const Replanner& replanner, double now_s);
  // A child of this process has ended. The node that the job has lost with it, if it was a keeper whose node
  // had come; a node that is lost some other way is to be handed to release().
  std::optional<std::string> child_ended(pid_t child, int wait_status, double now_s);
  // An agent has said hello from there: the node with the GPUs to be used, when it is one of the helpers.
  std::optional<SnapshotNode> came(const std::string& node, double now_s);

  // Nodes that were asked for, there or not.
  bool holds(const std::string& node) const { return helpers_.contains(node); }
  // Some are about to come: a change of plan waits for them.
  bool awaits(double now_s) const;
  // Nodes that are there, since `for_s` at least, and not in `used`.
  std::vector<std::string> idle(const std::set<std::string>& used, double for_s, double now_s) const;
  void release(const std::string& node, const std::string& why, double now_s);
  // All of them, because the job ends.
  void release_all();

 private:
  struct Helper {
    SnapshotNode node;  // free GPUs: those that are to be used
    pid_t keeper = -1;
    double asked_s = 0;
    std::optional<double> came_s{};
    bool released = false;
  };

  void choose(const Training& training, const Replanner& replanner, double now_s);
  void take(const GrowthAnswer& answer, double now_s);
  std::vector<SnapshotNode> candidates(double now_s) const;

  const Options options_;
  EventLog& events_;
  const std::string log_;
  const std::function<void(const std::string&)> say_;
  ClusterLook look_;
  double next_look_s_ = 0;
  std::optional<Snapshot> seen_;  // and not yet thought about
  std::string answered_;          // question that was answered last: the same one is not asked again
  std::string said_;              // why nothing was worth it, as told last
  std::future<GrowthAnswer> answer_;
  double asked_iteration_s_ = 0;
  std::map<std::string, Helper> helpers_;       // by node
  std::map<std::string, double> not_before_s_;  // nodes that were refused or given back
};

}  // namespace sailor
