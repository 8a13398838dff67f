// All that this project asks of a cluster's scheduler. Two implementations: the site's own, which
// site_scheduler() gives, and a simulated one (simulated_scheduler.h) for tests and studies. Both pass the
// tests of tests/unit/planner/scheduler/interface_tests.h.
//
// Errors: a call that asks throws std::runtime_error when there is no answer within 10 s, unless it says
// otherwise; one that only tells (give_back, requeue) throws nothing, because the scheduler ends by itself
// what it was not told about. Steps and node programs are processes that the caller watches: it polls
// step_end(), or reaps children itself where the number is that of a process.
//
// The site's scheduler keeps no state of its own and may be called from any thread; the environment that its
// forget_*() calls change is the process's. The simulated one is used from one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/scheduler/allocation.h"
#include "planner/scheduler/jobs.h"

namespace sailor {

// A helper job that was asked for.
class HelperAllocation {
 public:
  virtual ~HelperAllocation() = default;
  // Has the scheduler granted or refused it? Never blocks.
  virtual bool decided() = 0;
  // Takes the request back, if it is not decided; decided() follows soon.
  virtual void withdraw() = 0;
  struct Answer {
    std::optional<std::string> job;  // that holds the node; nothing = not granted, or not yet
    std::string text;                // what the scheduler said, for people; may be several lines
  };
  // As far as it is known now.
  virtual Answer answer() = 0;
};

// Names a step, or a node program, of the process that started it: the process id of a child where it has
// one.
using StepId = int64_t;

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Who am I in? Never asks anybody: from the environment.
  virtual std::optional<OwnJob> own_job() const = 0;
  // The cluster's name of the node that this process runs on; empty when it is in no step.
  virtual std::string own_node() const = 0;
  // A value that the submission sent along with the job; nothing when it sent none of that name.
  virtual std::optional<std::string> carried_value(const std::string& name) const = 0;
  // Not to be inherited by the processes that this one starts.
  virtual void forget_carried_value(const std::string& name) = 0;
  // The nodes of the job that this process is in. Throws std::runtime_error outside a job.
  virtual Allocation own_allocation() = 0;
  // Removes what would steer the steps that this process starts in ways that they do not say.
  virtual void forget_step_defaults() = 0;
  // This process belongs to no job any more: what it starts in another one would mix the two up.
  virtual void forget_own_job() = 0;

  // All nodes, in the scheduler's order, and the jobs of all users, as far as they are shown: those that wait
  // and run, and for a while those that have ended.
  virtual std::vector<NodeInfo> nodes() = 0;
  virtual std::vector<QueuedJob> queue() = 0;
  // Nothing when the scheduler does not know it, or does not answer.
  virtual std::optional<NodeInfo> find_node(const std::string& name) = 0;
  virtual std::optional<QueuedJob> find_job(const std::string& id) = 0;
  // When a job submitted now would start; an estimate. Nothing when it never could.
  virtual std::optional<int64_t> could_start(const JobRequest& request) = 0;

  // Returns the job's id. Throws std::runtime_error with the scheduler's reason; some sites take a job that
  // can never start.
  virtual std::string submit(const JobRequest& request) = 0;
  virtual std::unique_ptr<HelperAllocation> allocate_more(const HelperRequest& request) = 0;
  // Cancels a job of this user. What has ended already is well.
  virtual void give_back(const std::string& job) = 0;
  // Cancels all helper jobs of that job.
  virtual void give_back_helpers(const std::string& main_job) = 0;
  // Puts a job that runs, or has failed, into the queue again. Others may have been quicker.
  virtual void requeue(const std::string& job) = 0;

  // Throw std::runtime_error when they cannot be started; what goes wrong later is their wait status.
  virtual StepId start_step(const StepSpec& step) = 0;
  virtual StepId start_program(const NodeProgram& program) = 0;
  // Wait status, as of waitpid, once it has ended; nothing before, and for what has been told already.
  virtual std::optional<int> step_end(StepId step) = 0;
  // SIGTERM asks it to end with its processes, SIGKILL does not ask.
  virtual void signal_step(StepId step, int signal) = 0;

  // The command line of a process that is the step as long as it lives, for one that becomes it; the step's
  // environment is that process's.
  virtual std::vector<std::string> step_command(const StepSpec& step) = 0;
  // Likewise of a job over these parts, on whose first node `command` runs.
  virtual std::vector<std::string> job_command(const std::string& name, const std::vector<JobPart>& parts,
                                               const std::vector<std::string>& command) = 0;
};

// The scheduler of this site, as the program was built: one object, for the life of the process. A program
// that was built without one has a scheduler that says so when it is asked, and is in no job.
Scheduler& site_scheduler();

// Of the job that this process runs in; empty outside.
inline std::string own_job_id(const Scheduler& scheduler) {
  return scheduler.own_job().value_or(OwnJob{}).id;
}

}  // namespace sailor
