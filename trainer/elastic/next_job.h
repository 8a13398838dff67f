// How a job ends that was stopped before its last step: maybe another job continues the training
// (job_stop.h).
#pragma once

#include <string>
#include <vector>

#include "planner/history/run_summary.h"
#include "planner/scheduler/scheduler.h"
#include "trainer/elastic/job_stop.h"

namespace sailor {

struct StoppedJob {
  StopReason stop;
  std::string job_id;
  int restarts = 0;         // when this start began
  bool saved_more = false;  // this start has brought the training further
  std::string run_directory;
  std::vector<std::string> variables;  // of this process, which the next job must not inherit
};

// Submits the next part of the training if there is to be one. Completes status, error and next job of the
// summary, whose error is the reason of the stop, and returns the exit code. If a job was submitted, this
// process is in no job afterwards.
int end_stopped_job(const StoppedJob& stopped, Scheduler& scheduler, RunSummary& summary);

}  // namespace sailor
