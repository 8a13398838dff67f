// The controller of a job: starts the ranks of a plan, renews leases, prints progress, and ends all processes
// of the job together, after the last step, a failure or a signal. Unreachable ranks exit when their lease
// expires.
//
// A job with checkpoints saves its state when it is told to stop and before its time limit. If its submission
// can be repeated, it then submits the job that continues (job_stop.h).
//
// A failure ends the job, unless the job is elastic: then it continues with the remaining GPUs, in a new
// generation (generations.h).
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "planner/plan/plan.h"
#include "planner/plan/queued_nodes.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/replanner.h"

namespace sailor {

struct ControllerOptions {
  bool local = false;                  // all ranks on this machine, no scheduler
  Allocation allocation;               // of the job; empty when local
  std::string job_directory;           // base of relative paths in the job spec
  std::string run_directory;           // created if missing
  std::string moved{};                 // on other nodes than planned (StartPlan::text)
  std::string data{};                  // describes the training data
  double unigram_entropy = 0;          // of the data, nats per token: a reference for losses
  double step_flops = 0;               // floating-point operations of an iteration; 0 = unknown
  std::optional<double> peak_flops{};  // per second, of the plan's GPUs
  int64_t trace_step = 0;              // iteration to write a timeline of; 0 = none
  bool emulated = false;               // some GPU type of the plan is emulated; printed with the results
  // For the summary: the inputs of this run's predictions.
  std::string catalog{};
  std::vector<std::string> profiles{};
  PlanningFiles planning{};  // inputs of the plan; empty: the site's current files are copied to the run
  bool elastic = false;
  Replanner::Options replanning{};  // of an elastic job
  double grow_every_s = 0;          // interval of searching for more nodes; 0 = never
  bool yields = false;              // ElasticSpec::yield, or the site's
  // From the submission: limits on the nodes of the job, as options of sailor-cluster, and on their number.
  std::vector<std::string> node_limits{};
  std::optional<int> most_nodes{};
  std::vector<QueuedNodes> queued{};         // for which it queues from its start on
  std::string grow_partition{}, grow_qos{};  // of helper jobs, by the site; empty = as the submission
  double nodes_s = 600;  // maximum wait of an elastic job for nodes while no plan is possible
  // A job with checkpoints stops in an orderly way, and before its time limit.
  int64_t checkpoint_bytes = 0;            // size of one, for the time that it takes
  std::function<int64_t()> saved_steps{};  // in the newest checkpoint; 0 = none. Empty: the job has none
  bool encrypts_data = false;              // what ranks send each other over sockets
  double lease_s = 15;
  double join_timeout_s = 120;  // from the start of the launch until every rank has joined
};

// Instead of an exit code: the launcher has failed, or does not end, and no rank has joined.
constexpr int kNoRankJoined = -1;

// Runs the job to its end, in the allocation of `scheduler` unless local. Prints progress to `out`, and at
// most one line about a failure to stderr. Returns the exit code. Call before starting any thread. Requires a
// plan that check_plan(plan, job) accepts, placed on the allocation's nodes unless local. Throws
// std::runtime_error if nothing could be started.
int run_controller(const JobSpec& job, const std::string& job_text, const Plan& plan,
                   const ControllerOptions& options, Scheduler& scheduler, std::ostream& out);

}  // namespace sailor
