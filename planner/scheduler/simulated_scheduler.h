// A simulated cluster as one process sees it: an implementation of Scheduler for tests and studies. Several
// processes of one cluster have one object each. Used from one thread; time passes in the cluster alone.
//
// Scripts of jobs, and the commands of steps and programs, are played, not run: `sleep N` ends after N s,
// `true` at once, `false` at once and badly, whatever follows; all others go on until somebody ends them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"
#include "planner/scheduler/simulated_cluster.h"

namespace sailor {

class SimulatedScheduler final : public Scheduler {
 public:
  // The cluster outlives the object. The process is in no job.
  explicit SimulatedScheduler(SimulatedCluster& cluster) : cluster_(cluster) {}

  // From now on the process is one of this job, which must run, on its first node. Throws std::runtime_error.
  void enter(const std::string& job, std::map<std::string, std::string> carried = {});

  // What this process has started, by its id, whether it has ended or not.
  struct Step {
    std::string job;
    std::string node;
    std::vector<std::string> command;
    std::map<std::string, std::string> environment{};
  };
  const std::map<StepId, Step>& steps() const { return steps_; }
  // The step ends with that wait status. One of a program takes its job along.
  void end_step(StepId step, int wait_status);

  std::optional<OwnJob> own_job() const override;
  std::string own_node() const override { return own_node_; }
  std::optional<std::string> carried_value(const std::string& name) const override;
  void forget_carried_value(const std::string& name) override { carried_.erase(name); }
  Allocation own_allocation() override;
  void forget_step_defaults() override {}
  void forget_own_job() override;

  std::vector<NodeInfo> nodes() override { return cluster_.nodes(); }
  std::vector<QueuedJob> queue() override { return cluster_.jobs(); }
  std::optional<NodeInfo> find_node(const std::string& name) override;
  std::optional<QueuedJob> find_job(const std::string& id) override { return cluster_.find_job(id); }
  std::optional<int64_t> could_start(const JobRequest& request) override {
    return cluster_.could_start(request);
  }

  std::string submit(const JobRequest& request) override;
  std::unique_ptr<HelperAllocation> allocate_more(const HelperRequest& request) override;
  void give_back(const std::string& job) override { cluster_.end_job(job, JobState::cancelled); }
  void give_back_helpers(const std::string& main_job) override;
  void requeue(const std::string& job) override { cluster_.requeue(job); }

  StepId start_step(const StepSpec& step) override;
  StepId start_program(const NodeProgram& program) override;
  std::optional<int> step_end(StepId step) override;
  void signal_step(StepId step, int signal) override { end_step(step, signal); }
  // The cluster's nodes are this machine.
  std::vector<std::string> step_command(const StepSpec& step) override { return step.command; }
  std::vector<std::string> job_command(const std::string&, const std::vector<JobPart>&,
                                       const std::vector<std::string>& command) override {
    return command;
  }

 private:
  struct Running {
    int restarts = 0;  // of its job, when it began
    bool is_program = false;
    std::optional<int64_t> ends_s{};  // by itself; nothing = it does not, or waits for its job to start
    int status = 0;                   // then
  };
  std::optional<int> status_now(StepId step, const Running& running) const;

  SimulatedCluster& cluster_;
  std::string own_id_, own_node_;
  std::map<std::string, std::string> carried_;
  std::map<StepId, Step> steps_;
  std::map<StepId, Running> running_;  // whose end has not been told
  std::map<StepId, int> ended_;        // by end_step(), and not told
  StepId next_step_ = 1;
};

}  // namespace sailor
