// Memory of a trainer rank before any tensor of a model: program, libraries, and their buffers.
#pragma once

#include <cstdint>

#include "planner/spec/job_spec.h"

namespace sailor {

// Trains a negligibly small model of the job's family, two stages on two real ranks of this machine, and
// returns the larger peak of resident memory. Takes about two seconds. Throws std::runtime_error when the
// ranks cannot be started.
int64_t measure_base_memory_bytes(const JobSpec& job);
// The same for GPU memory, with one rank: context, libraries, communicators. The GPU must be otherwise
// unused.
int64_t measure_gpu_base_memory_bytes(const JobSpec& job);

}  // namespace sailor
