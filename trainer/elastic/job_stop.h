// A job that stops before its last step: when, and whether another job continues the training. Pure.
//
// A job with checkpoints saves its state and stops when it is told to (a signal, a node that leaves), and
// before its time limit. Then it submits the next part of the training, unless somebody cancelled it or the
// scheduler starts it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/scheduler/jobs.h"

namespace sailor {

// Why a job stops.
struct StopReason {
  std::string text;        // "stopped by signal 15 (Terminated)"
  bool continues = false;  // the reason itself asks for another job that continues
  double within_s = 0;     // time to save
};

// How long before its time limit a job stops: time for its ranks to reach the end of a step and to save, and
// a margin to end the job and to submit the next one. At most half of `whole_s`, the time from the start of
// training to the limit.
struct StopLead {
  double step_s = 0;  // longest step
  double save_s = 0;  // measured, or estimated_save_s()
  double whole_s = 0;
};
// Until the end of the job, and the part of it that ranks have to save.
double lead_s(const StopLead& lead);
double time_to_save_s(const StopLead& lead);
// Of a checkpoint of that many bytes, before one was measured.
double estimated_save_s(int64_t bytes);

enum class AfterStop {
  continues,     // by another job, which this one submits
  starts_again,  // the scheduler has put this job back into the queue
  ends,          // somebody wants it to end
  no_progress    // another job would not get further
};
// `job` as the scheduler shows it when the ranks have stopped; nothing if it does not answer. `restarts` when
// this start began. `saved_more`: it has saved a step.
AfterStop after_stop(const StopReason& reason, const std::optional<QueuedJob>& job, int restarts,
                     bool saved_more);

}  // namespace sailor
