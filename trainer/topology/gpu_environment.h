// CUDA's environment variables for a rank.
#pragma once

namespace sailor {

// Do ranks share GPUs (SAILOR_DEVICE=shared)? For tests: several ranks on a machine with one GPU.
bool shares_gpus();

// Sets those below, except the ones that the user has set. Call it before other threads exist, and before
// CUDA is used.
//
// CUDA_MODULE_LOADING=EAGER: by default a kernel is loaded at its first launch, for which CUDA may wait until
// the device is idle. A receive that was posted ahead keeps it busy until the peer sends, and the peer may be
// waiting for what this rank computes next. (cuBLAS loads the kernels of its products at their first use all
// the same: see PipelineExecutor::warm_up().)
//
// CUDA_DEVICE_MAX_CONNECTIONS=32: streams share hardware queues, by default 8, and wait for one another
// inside a queue. A rank has three streams and up to two for every communicator; a receive must not delay
// computation.
//
// NCCL_HOSTID, if ranks share GPUs: another one for every process. NCCL refuses two ranks on one GPU of a
// host, and identifies hosts by it. Ranks with different ones communicate over the network:
// NCCL_SOCKET_IFNAME and NCCL_IB_DISABLE choose which.
void set_gpu_environment();

// Also sets those of a job with `training.deterministic`, except the ones that the user has set:
//
// CUBLAS_WORKSPACE_CONFIG=:4096:8: otherwise cuBLAS may choose another algorithm when several streams are
// busy.
//
// NCCL_NVLS_ENABLE=0: sums in the switches of NVLink come in any order. Rings and trees have a fixed one.
void set_deterministic_environment();

}  // namespace sailor
