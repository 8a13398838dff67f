// The interface to a cluster's scheduler. There are two implementations: the site's own, which
// site_scheduler() returns, and a simulated one (simulated_scheduler.h) for tests and studies. Both pass the
// tests of tests/unit/planner/scheduler/interface_tests.h.
//
// Errors: queries throw std::runtime_error when there is no answer within 10 s, unless stated otherwise.
// give_back(), forget_node_names() and requeue() throw nothing, because the scheduler cleans up by itself in
// the end. Steps and node programs are processes that the caller watches: it polls step_end(), or reaps
// children itself if the number is that of a process.
//
// The site's scheduler has no state and may be called from any thread; its forget_*() functions change the
// environment of the process. The simulated one is used from one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/allocation.h"
#include "planner/scheduler/jobs.h"

namespace sailor {

// Identifies a step or node program within the process that started it: the process id of the child if it has
// one.
using StepId = int64_t;

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // The job of this process, from the environment; never contacts the scheduler.
  virtual std::optional<OwnJob> own_job() const = 0;
  // The scheduler's name of the node of this process; empty outside a step.
  virtual std::string own_node() const = 0;
  // The number of this process among the tasks of its step on this node; nothing outside a step.
  virtual std::optional<int> own_task() const = 0;
  // A value that the submission sent with the job; nothing if it sent none of that name.
  virtual std::optional<std::string> carried_value(const std::string& name) const = 0;
  // Removes it from the environment, so that started processes do not inherit it.
  virtual void forget_carried_value(const std::string& name) = 0;
  // The nodes of this process's job. Throws std::runtime_error outside a job.
  virtual Allocation own_allocation() = 0;
  // Removes environment variables that would change the steps that this process starts.
  virtual void forget_step_defaults() = 0;
  // Removes the own job from the environment, so that programs in another job are not confused.
  virtual void forget_own_job() = 0;

  // All nodes, in the scheduler's order; and the visible jobs of all users: waiting, running, and those that
  // ended recently.
  virtual std::vector<NodeInfo> nodes() = 0;
  virtual std::vector<QueuedJob> queue() = 0;
  // Nothing if the scheduler does not know the node, or does not answer.
  virtual std::optional<NodeInfo> find_node(const std::string& name) = 0;
  virtual std::optional<QueuedJob> find_job(const std::string& id) = 0;
  // Estimated start of a job that is submitted now; nothing if it could never start.
  virtual std::optional<int64_t> could_start(const JobRequest& request) = 0;

  // Returns the job's id. Throws std::runtime_error with the scheduler's reason. Some sites accept a job that
  // can never start.
  virtual std::string submit(const JobRequest& request) = 0;
  // Submits this process's job again, with the script and options of its submission, as the next part of a
  // training (continuation.h). It is planned anew and starts when the job of this process has ended. Returns
  // its id. Afterwards this process is in no job. Throws std::runtime_error with the reason.
  virtual std::string submit_next_part(const std::string& run_directory) = 0;
  // Submits a helper job and returns its id. Throws like submit().
  virtual std::string submit_helper(const HelperRequest& request) = 0;
  // Cancels a job of this user. A job that has already ended is not an error.
  virtual void give_back(const std::string& job) = 0;
  // Cancels all helper jobs of that job, also those that wait.
  virtual void give_back_helpers(const std::string& main_job) = 0;
  // Lets a pending job start on any nodes that its request fits, instead of those that it names. Does nothing
  // to other jobs. Of a heterogeneous job: all components.
  virtual void forget_node_names(const std::string& job) = 0;
  // Requeues a job that runs or has failed. Does nothing if another process already did, or if the job was
  // submitted as one that must not be requeued.
  virtual void requeue(const std::string& job) = 0;

  // Throw std::runtime_error when they cannot be started; later failures are in the wait status.
  virtual StepId start_step(const StepSpec& step) = 0;
  virtual StepId start_program(const NodeProgram& program) = 0;
  // Wait status (as of waitpid) of a step that ended; nothing while it runs, and after it was returned once.
  virtual std::optional<int> step_end(StepId step) = 0;
  // SIGTERM asks the step to end, SIGKILL forces it.
  virtual void signal_step(StepId step, int signal) = 0;

  // The command line of a process that lives as long as the step, for callers that exec it; the step's
  // environment is that process's.
  virtual std::vector<std::string> step_command(const StepSpec& step) = 0;
  // The same for a job over these parts, whose first node runs `command`.
  virtual std::vector<std::string> job_command(const std::string& name, const std::vector<JobPart>& parts,
                                               const std::vector<std::string>& command) = 0;
};

// The scheduler of this site, as built into the program: one object for the life of the process. A program
// built without a scheduler gets one that is in no job and reports errors for all queries.
Scheduler& site_scheduler();

// Whether the job of this process may have other nodes than the planned ones (planner/inputs/carried_plan.h).
inline bool may_move(const Scheduler& scheduler) {
  return scheduler.carried_value("SAILOR_EQUAL_NODES_0").has_value();
}

// Id of this process's job; empty outside a job.
inline std::string own_job_id(const Scheduler& scheduler) {
  return scheduler.own_job().value_or(OwnJob{}).id;
}

}  // namespace sailor
