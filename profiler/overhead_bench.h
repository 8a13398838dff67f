// Overhead of an iteration that does not depend on the plan: everything that a rank does besides computing
// layers and updating parameters.
#pragma once

#include "planner/spec/job_spec.h"
#include "profiler/samples.h"

namespace sailor {

// Runs whole iterations of one microbatch on one rank, and returns the median of their time without forward,
// backward and update. With `gpu` the rank computes on a GPU of this machine.
Estimate measure_iteration_overhead_s(const JobSpec& job, const MeasuringOptions& options, bool gpu = false);

}  // namespace sailor
