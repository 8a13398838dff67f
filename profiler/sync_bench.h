// Measures what summing gradients over replicas costs a rank's own processor: packing them into buckets,
// adding, unpacking. What the messages take by themselves is the link's business (link_bench.h).
#pragma once

#include "planner/profile/network_profile.h"
#include "planner/spec/job_spec.h"
#include "profiler/samples.h"

namespace sailor {

// Sums the gradients of some of the job's layers over `ranks` replicas on this machine, as the trainer does,
// and returns the seconds per byte beyond those that the simulator expects of `network` for the messages; 0
// for fewer than two ranks. Throws InputError, CommError.
Estimate measure_sync_s_per_byte(const JobSpec& job, int ranks, const NetworkProfile& network,
                                 const MeasuringOptions& options);

}  // namespace sailor
