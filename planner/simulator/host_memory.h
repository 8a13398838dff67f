// Host memory of one rank: what its process needs of the node's memory, not of the GPU's. Pure. An estimate
// for requests to a scheduler, which ends jobs that use more: rounded up on purpose, and not measured.
//
//     rank  = base + copies x state + what is offloaded
//             + (the rank's predicted memory, if it computes on processors)
//     base  = 1 GiB on processors, 4 GiB with a GPU (libraries, context, pinned buffers)
//     state = weights, optimizer state and master weights of the rank
//     copies: of a job with checkpoints the one that is written or kept (memory_copies: neighbour: two); of
//     an elastic job one more, for the change of its plan
#pragma once

#include <cstdint>

#include "planner/simulator/prediction.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct HostMemory {
  int64_t least_bytes = 0;  // under this plan
  int64_t most_bytes = 0;   // under any later plan of an elastic job, which fills the GPU at most
};

// Of a rank with this memory on a GPU of `capacity_bytes`.
HostMemory host_memory(const JobSpec& job, const MemoryBreakdown& memory, int64_t capacity_bytes,
                       bool on_processors);

}  // namespace sailor
