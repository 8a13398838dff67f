// A cluster and its batch scheduler in virtual time: discrete events, deterministic, whole nodes.
//
// Jobs start in the order of their partition's tier (higher first), then of `nice` (lower first), then of
// submission. Backfill lets a job overtake others that it does not delay, according to time limits; a job
// that allows less time than its limit gets the least if it then starts earlier. Every waiting job has a
// reservation (conservative), or only the first one (EASY). A job of a higher tier preempts jobs of lower
// tiers whose partitions allow it, when it can start then: first those of the lowest tier, and among them the
// youngest. They continue for the grace time of their partition.
//
// Only the simulation knows how long a job really runs. Time passes only in advance_to(), in whole seconds.
// SimulatedScheduler is the view of one process. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/scheduler/backfill_map.h"
#include "planner/scheduler/jobs.h"

namespace sailor {

struct SimulatedNode {
  std::string name;
  std::vector<std::string> features{};
  std::string gpu_type{};
  int gpus = 0;
  int cpus = 1;
};

struct SimulatedPartition {
  std::string name;
  std::vector<std::string> nodes;
  int tier = 0;
  enum class Preempted { never, requeued, cancelled };
  Preempted preempted = Preempted::never;                    // what happens to its jobs
  int64_t grace_s = 0;                                       // their time until then
  std::optional<int64_t> default_limit_s{}, most_limit_s{};  // time limits; nothing = none
};

struct SimulatedSite {
  std::vector<SimulatedNode> nodes;
  std::vector<SimulatedPartition> partitions;  // the first is the default one
  enum class Backfill { easy, conservative };
  Backfill backfill = Backfill::conservative;
  int64_t start_s = 1'000'000'000;  // time at which the simulation begins, since 1970
  int64_t requeue_delay_s = 0;      // until a requeued job is eligible again
};

// An event of a job, with its time.
struct SimulatedEvent {
  enum class Kind { submitted, started, preempting, requeued, ended };
  int64_t time_s = 0;
  Kind kind = Kind::submitted;
  std::string job;
  bool operator==(const SimulatedEvent&) const = default;
};

// The course of a job that nobody ends.
struct SimulatedCourse {
  std::optional<int64_t> takes_s{};  // run time after every start; nothing = until its time limit
  bool fails = false;
};

class SimulatedCluster {
 public:
  // Throws std::runtime_error that names an unknown node of a partition.
  explicit SimulatedCluster(SimulatedSite site);

  int64_t now_s() const { return now_s_; }
  // Lets time pass, including the events at `time_s`. Requires time_s >= now_s().
  void advance_to(int64_t time_s);
  // Calls `what` at that time, before jobs end and start then. Requires time_s >= now_s().
  void at(int64_t time_s, std::function<void()> what);

  // Returns the job's id. Throws std::runtime_error when the job could never start, even on an empty cluster.
  std::string submit(const JobRequest& request, const SimulatedCourse& course = {});
  // Nothing when it cannot start now; then no job is created.
  std::optional<std::string> submit_at_once(const JobRequest& request, const SimulatedCourse& course = {});
  // When a job submitted now would start, after all waiting ones; nothing if it never could.
  std::optional<int64_t> could_start(const JobRequest& request) const;
  // A job that waits or runs ends in that state; other jobs do not change.
  void end_job(const std::string& id, JobState state);
  // A job that waits may start on any nodes that its request fits; other jobs do not change.
  void forget_node_names(const std::string& id);
  // A job that runs, or has ended by itself, is queued again, if it allows that.
  void requeue(const std::string& id);

  // Power failure: jobs with `no_kill` continue without the node, others are requeued if they allow it.
  void fail_node(const std::string& name);
  // The scheduler cannot reach the node: its jobs continue, and it gets no new ones.
  void lose_contact(const std::string& name);
  void drain_node(const std::string& name);
  // Ends all three states.
  void return_node(const std::string& name);

  std::vector<NodeInfo> nodes() const;  // in the site's order
  std::vector<QueuedJob> jobs() const;  // in the order of their submission
  std::optional<QueuedJob> find_job(const std::string& id) const;
  const std::vector<SimulatedEvent>& history() const { return history_; }

 private:
  struct Job {
    QueuedJob seen;
    JobRequest request;
    SimulatedCourse course;
    size_t partition = 0;  // of the site
    int64_t number = 0;
    std::vector<size_t> fits;  // nodes of such jobs, whatever their state
    int64_t limit_s = BackfillMap::kForEver;
    int64_t eligible_s = 0;
    // While it runs:
    std::vector<size_t> holds;
    int64_t ends_s = BackfillMap::kForEver;
    int64_t limit_end_s = BackfillMap::kForEver;
    JobState end_state = JobState::completed;
    bool preempting = false;  // its grace time is running
    // While it waits: other jobs are being preempted for it.
    bool has_preempted = false;

    bool runs() const { return seen.state == JobState::running; }
    bool waits() const { return seen.state == JobState::pending; }
    // The first time at which it can no longer start.
    int64_t gives_up_s() const {
      if (!request.deadline_s) return BackfillMap::kForEver;
      return *request.deadline_s - request.least_s.value_or(1) + 1;
    }
    // Its time limit if it starts then.
    int64_t longest_s(int64_t begin_s) const {
      return request.deadline_s ? std::min(limit_s, *request.deadline_s - begin_s) : limit_s;
    }
    size_t width() const {
      return request.node_names.empty() ? static_cast<size_t>(request.nodes) : request.node_names.size();
    }
  };

  Job make_job(const JobRequest& request, const SimulatedCourse& course) const;
  std::string add(Job job);
  size_t index_of(const std::string& node) const;
  const SimulatedPartition& partition_of(const Job& job) const { return site_.partitions[job.partition]; }
  NodeInfo& node(const std::string& name) { return nodes_[index_of(name)]; }
  int64_t number_of(const std::string& id) const;  // 0 = there is no such job
  std::vector<size_t> fitting(const Job& job) const;
  std::vector<size_t> usable(const Job& job) const;  // of job.fits, those that take new jobs now
  std::vector<Job*> waiting();
  // A job of this request waits behind all others, and preempts none.
  bool comes_last(const Job& job) const;
  bool one_tier() const;
  void mark_changed(const std::vector<size_t>& nodes);
  void mark_concerned(const std::vector<Job*>& queue);
  std::optional<BackfillMap::Slot> slot_of(const Job& job, const BackfillMap& plan) const;

  // Plans again the waiting jobs that changed nodes concern.
  void schedule();
  // Starts the job, or reserves its nodes.
  void take(Job& job, const std::optional<BackfillMap::Slot>& slot);
  void schedule_on_other_nodes();  // nodes were lost or returned
  // Preempts jobs so that this one can start soon. Returns whether anything changed.
  bool preempt_for(Job& job);
  void preempt(Job& job);
  void start(Job& job, const std::vector<size_t>& nodes);
  void release(Job& job);
  void finish(Job& job, JobState state);
  void wait_again(Job& job);
  int64_t next_event_s() const;
  void note(SimulatedEvent::Kind kind, const Job& job);

  const SimulatedSite site_;
  int64_t now_s_;
  std::vector<NodeInfo> nodes_;
  std::map<std::string, size_t> index_;  // of nodes, by name
  std::map<int64_t, Job> jobs_;          // by number
  std::set<int64_t> active_;             // of them, those that wait or run
  int64_t next_number_ = 1;
  BackfillMap plan_;           // running jobs and reservations
  std::vector<bool> changed_;  // nodes whose part of plan_ is out of date
  bool reserved_ = false;      // plan_ has a reservation
  std::multimap<int64_t, std::function<void()>> planned_;
  std::vector<SimulatedEvent> history_;
};

}  // namespace sailor
