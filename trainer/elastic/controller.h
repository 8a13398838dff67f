// The controller of a job: starts the ranks of a plan, gives out leases, shows progress, and ends everything
// together, whatever happens: the last step, a rank's failure, a signal. Ranks that it cannot reach end by
// themselves when their lease runs out.
//
// A failure stops the job, unless it is elastic: then it goes on with what is left, in another generation
// (generations.h).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "planner/plan/plan.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/replanner.h"

namespace sailor {

struct ControllerOptions {
  bool local = false;                  // all ranks on this machine, no scheduler
  Allocation allocation;               // of the job; empty when local
  std::string job_directory;           // what relative paths of the job spec start from
  std::string run_directory;           // made if absent
  std::string data{};                  // describes the training data
  double unigram_entropy = 0;          // of it, nats per token: what a loss is held against
  double step_flops = 0;               // floating-point operations of an iteration; 0 = unknown
  std::optional<double> peak_flops{};  // per second, what the plan's GPUs promise
  int64_t trace_step = 0;              // iteration whose timeline is written; 0 = none
  bool emulated = false;               // some GPU type of the plan is emulated: labels what is printed
  // For the summary: what predictions of this run are made from.
  std::string catalog{};
  std::vector<std::string> profiles{};
  PlanningFiles planning{};  // that came with the plan; empty = what the site has now is kept with the run
  bool elastic = false;
  Replanner::Options replanning{};  // of an elastic job
  double grow_every_s = 0;          // from look to look for more nodes; 0 = never
  // Of a submission: limits on the nodes that the job may have, as sailor-cluster takes them, and their
  // number.
  std::vector<std::string> node_limits{};
  std::optional<int> most_nodes{};
  double nodes_s = 600;  // that an elastic job waits for nodes while no plan is possible
  double lease_s = 15;
  double join_timeout_s = 120;  // from the start of the launch until every rank has joined
};

// Runs the job to its end, in the job of `scheduler` unless local. Progress goes to `out`, at most one line
// about a failure to stderr. Returns the exit code. Call before any thread exists. Requires a plan that
// check_plan(plan, job) accepts, placed on the allocation's nodes unless local. Throws std::runtime_error
// when nothing could be started.
int run_controller(const JobSpec& job, const std::string& job_text, const Plan& plan,
                   const ControllerOptions& options, Scheduler& scheduler, std::ostream& out);

}  // namespace sailor
