// A finished run as a record that predictions can be held against (planner/plan/run_record.h). Pure.
#pragma once

#include "planner/plan/run_record.h"
#include "trainer/record/run_metrics.h"

namespace sailor {

// Step time is the median of the steps after the warm-up, memory the peak of the fullest rank; what was not
// measured stays out. Throws InputError when the family of the job's model has no known shape.
RunRecord measured_run(const RunSummary& summary, const JobSpec& job, const Plan& plan);

}  // namespace sailor
