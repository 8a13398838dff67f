// Measures the processor time of gradient reduction over replicas: packing into buckets, adding, unpacking.
// The messages themselves are measured in link_bench.h.
#pragma once

#include "planner/profile/network_profile.h"
#include "planner/spec/job_spec.h"
#include "profiler/samples.h"

namespace sailor {

// Reduces the gradients of some of the job's layers over `ranks` replicas on this machine, like the trainer,
// and returns the seconds per byte in addition to those that the simulator predicts for the messages from
// `network`; 0 for fewer than two ranks. Throws InputError, CommError.
Estimate measure_sync_s_per_byte(const JobSpec& job, int ranks, const NetworkProfile& network,
                                 const MeasuringOptions& options);

}  // namespace sailor
