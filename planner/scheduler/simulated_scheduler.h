// The view that one process has of a simulated cluster: an implementation of Scheduler for tests and studies.
// Every process of a cluster has its own object. Used from one thread; time passes only in the cluster.
//
// Scripts of jobs and commands of steps and programs are simulated, not run: `sleep N` ends after N s, `true`
// at once, `false` at once with a failure; all others run until somebody ends them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/scheduler/scheduler.h"
#include "planner/scheduler/simulated_cluster.h"

namespace sailor {

class SimulatedScheduler : public Scheduler {
 public:
  // The cluster must outlive the object. The process is in no job.
  explicit SimulatedScheduler(SimulatedCluster& cluster) : cluster_(cluster) {}

  // Makes the process one of this running job, on its first node. Throws std::runtime_error.
  void enter(const std::string& job, std::map<std::string, std::string> carried = {});

  // A step or program that this process has started, by id, ended or not.
  struct Step {
    std::string job;
    std::string node;
    std::vector<std::string> command;
    std::map<std::string, std::string> environment{};
  };
  const std::map<StepId, Step>& steps() const { return steps_; }
  // Ends the step with that wait status. A node program takes its job along.
  void end_step(StepId step, int wait_status);

  std::optional<OwnJob> own_job() const override;
  std::string own_node() const override { return own_node_; }
  std::optional<int> own_task() const override { return std::nullopt; }  // its steps run no processes
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
  // For the same nodes; it runs until somebody ends it.
  std::string submit_next_part(const std::string& run_directory) override;
  std::string submit_helper(const HelperRequest& request) override;
  void give_back(const std::string& job) override { cluster_.end_job(job, JobState::cancelled); }
  void give_back_helpers(const std::string& main_job) override;
  void forget_node_names(const std::string& job) override { cluster_.forget_node_names(job); }
  void requeue(const std::string& job) override { cluster_.requeue(job); }

  StepId start_step(const StepSpec& step) override;
  StepId start_program(const NodeProgram& program) override;
  std::optional<int> step_end(StepId step) override;
  void signal_step(StepId step, int signal) override { end_step(step, signal); }
  // All nodes of the cluster are this machine.
  std::vector<std::string> step_command(const StepSpec& step) override { return step.command; }
  std::vector<std::string> job_command(const std::string&, const std::vector<JobPart>&,
                                       const std::vector<std::string>& command) override {
    return command;
  }

 private:
  struct Running {
    int restarts = 0;  // restarts of its job when it began
    bool is_program = false;
    // time at which it ends by itself; nothing = never, or its job has not started
    std::optional<int64_t> ends_s{};
    int status = 0;  // its status then
  };
  std::optional<int> status_now(StepId step, const Running& running) const;

  SimulatedCluster& cluster_;
  std::string own_id_, own_node_;
  std::map<std::string, std::string> carried_;
  std::map<StepId, Step> steps_;
  std::map<StepId, Running> running_;  // not yet reported as ended
  std::map<StepId, int> ended_;        // ended by end_step(), not yet reported
  StepId next_step_ = 1;
};

}  // namespace sailor
