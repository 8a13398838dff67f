// The controller of a job: starts the ranks of a plan, gives out leases, shows progress, and ends everything
// together, whatever happens: the last step, a rank's failure, a signal. Ranks that it cannot reach end by
// themselves when their lease runs out.
//
// One generation so far: the plan it was given. A failure stops the job.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/allocation.h"

namespace sailor {

struct ControllerOptions {
  bool local = false;                  // all ranks on this machine, no Slurm
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
  double lease_s = 15;
  double join_timeout_s = 120;  // from the start of the launch until every rank has joined
};

// Runs the job to its end. Progress goes to `out`, at most one line about a failure to stderr. Returns the
// exit code. Call before any thread exists. Requires a plan that check_plan(plan, job) accepts, placed on the
// allocation's nodes unless local. Throws std::runtime_error when nothing could be started.
int run_controller(const JobSpec& job, const std::string& job_text, const Plan& plan,
                   const ControllerOptions& options, std::ostream& out);

}  // namespace sailor
