// What a trainer rank occupies before any tensor of a model: program, libraries, the buffers that they keep.
#pragma once

#include <cstdint>

#include "planner/spec/job_spec.h"

namespace sailor {

// Trains a model of the job's family that is too small to count, two stages on two real ranks of this
// machine, and returns the larger one's peak of resident memory. Takes about two seconds. Throws
// std::runtime_error when the ranks cannot be started.
int64_t measure_base_memory_bytes(const JobSpec& job);
// The same of a GPU's memory, for one rank: context, libraries, communicators. Nobody else uses the GPU
// meanwhile.
int64_t measure_gpu_base_memory_bytes(const JobSpec& job);

}  // namespace sailor
