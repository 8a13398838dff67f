// One training of a queue study: its submissions, its jobs, and the nodes that it takes and returns while it
// runs, as the product decides. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/queue/plan_cache.h"
#include "tests/bench/queue/queue_study.h"
#include "tests/bench/queue/study_cluster.h"
#include "trainer/elastic/growth.h"
#include "trainer/record/event_log.h"

namespace sailor::bench {

// What all trainings of a study share. References outlive them.
struct StudyWorld {
  const Study& study;
  QueuePolicy policy;
  PlanCache& plans;
  StudyCluster& cluster;
  EventLog& events;
};

class TrainingRun {
 public:
  TrainingRun(const Training& training, StudyWorld& world);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun(TrainingRun&&) = delete;

  // Call every minute from its submission on.
  void tick();

  const Training& training() const { return training_; }
  std::optional<int64_t> started_s() const { return started_s_; }  // first
  std::optional<int64_t> ended_s() const { return ended_s_; }
  double gpu_s() const { return gpu_s_; }
  double usd() const { return usd_; }
  int64_t lost_steps() const { return lost_steps_; }
  int parts() const { return parts_; }      // jobs
  int changes() const { return changes_; }  // of the plan

 private:
  void submit();
  void submit_fixed();
  void submit_plan(const Candidate& candidate, double least_s = 0);
  JobRequest request_of(const Plan& plan, double least_s) const;
  void begin_part(const QueuedJob& job);
  void end_part(const QueuedJob& job);
  void count_until(double time_s);
  void set_end();

  void grow();
  Growth::Options growth_options(const QueuedJob& job);
  pid_t start_helper(const Growth::Wish& wish, int64_t end_s);
  bool see_helpers();
  bool end_helpers();
  void change_plan();
  void release_helpers();
  std::vector<std::string> nodes() const;

  double now_s() const { return static_cast<double>(world_.cluster.now_s()); }
  double step_s() const { return iteration_s_ * training_.slowdown; }
  double steps_left_at(double time_s) const;

  const Training& training_;
  StudyWorld& world_;
  double steps_left_;
  std::string job_;                  // empty = not submitted
  Plan plan_;                        // in force
  std::vector<QueuedNodes> queued_;  // for which the job queues while it runs
  double iteration_s_ = 0;
  std::optional<double> since_s_{};  // steps are counted up to then; nothing = not running
  std::optional<int64_t> started_s_{}, ended_s_{};
  std::vector<std::string> own_nodes_;  // of the job
  int generation_ = 0;                  // of plans
  std::optional<Growth> growth_;
  std::map<pid_t, std::string> helpers_;  // jobs, by keeper
  std::map<pid_t, std::string> joined_;   // nodes
  std::set<pid_t> told_to_end_;
  pid_t next_keeper_ = 1;
  double gpu_s_ = 0, usd_ = 0;
  int64_t lost_steps_ = 0;
  int parts_ = 0, changes_ = 0;
};

}  // namespace sailor::bench
