// The functions of NCCL that the plane calls, as a table: filled from libnccl when it is first asked for, or
// by a test with functions of its own.
//
// Loaded when a GPU is to be used, rather than linked: one build, and one package, then serves nodes with and
// without GPUs, and a rank has libtorch's NCCL and no second one. What linking would have found out, a test
// does: it resolves every name in the libraries that the build found. The types are nccl.h's, any release
// since 2.14 (communicators that do not block); a newer library takes the structures of older headers.
#pragma once

#include <nccl.h>

#include <stdexcept>
#include <string>

#include "trainer/comm/nccl/cuda_library.h"

namespace sailor {

struct NcclLibrary {
  decltype(&::ncclGetVersion) get_version;
  decltype(&::ncclGetUniqueId) get_unique_id;
  decltype(&::ncclCommInitRankConfig) comm_init;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error;
  decltype(&::ncclCommFinalize) comm_finalize;
  decltype(&::ncclCommDestroy) comm_destroy;
  decltype(&::ncclCommAbort) comm_abort;
  decltype(&::ncclGroupStart) group_start;
  decltype(&::ncclGroupEnd) group_end;
  decltype(&::ncclAllReduce) all_reduce;
  decltype(&::ncclReduceScatter) reduce_scatter;
  decltype(&::ncclAllGather) all_gather;
  decltype(&::ncclReduce) reduce;
  decltype(&::ncclBroadcast) broadcast;
  decltype(&::ncclSend) send;
  decltype(&::ncclRecv) recv;
  decltype(&::ncclGetErrorString) get_error_string;
  decltype(&::ncclGetLastError) get_last_error;
};

// Throws std::runtime_error where there is no libnccl.so.2, or one that is too old. Thread-safe.
const NcclLibrary& nccl_library();

// Both tables, which outlive whoever uses them.
struct DeviceLibraries {
  const NcclLibrary& nccl;
  const CudaLibrary& cuda;
};

// A call of NCCL that failed: which, and its reason.
class NcclError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws NcclError unless `result` is ncclSuccess or ncclInProgress. `comm` may be null.
void check(const NcclLibrary& nccl, ncclResult_t result, const char* call, ncclComm_t comm);

}  // namespace sailor
