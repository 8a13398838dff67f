// The GPUs of the ranks of a probe.
#pragma once

#include <memory>
#include <vector>

#include "profiler/links/probe.h"
#include "trainer/gpu/gpu.h"

namespace sailor {

// Opens this rank's GPU: each rank of a node gets its own, or none does. All ranks call it, unless
// `request.only` excludes NCCL for all of them; `factory` is in host memory. Sets `gpu` of all ranks, and
// `gpu_bytes` of the request by the GPU with least free memory. Rank 0 prints a note for nodes with too few
// GPUs. Throws std::runtime_error and DeviceFailure (as open_gpu), CommError, InputError (NCCL alone was
// wanted, and no rank has a GPU).
std::unique_ptr<Gpu> open_gpus(CommFactory& factory, ProbeRequest& request, std::vector<ProbeRank>& ranks);

}  // namespace sailor
