// The functions of NCCL that the plane calls, as a table: loaded from libnccl on first use, or filled by a
// test with its own functions.
//
// Loaded when a GPU is used, instead of linked: one build, and one package, then works on nodes with and
// without GPUs, and a rank uses libtorch's NCCL and no second one. A test replaces the linker's check: it
// resolves every name in the libraries that the build found. The types are nccl.h's, of any release since
// 2.14 (non-blocking communicators); a newer library accepts the structures of older headers.
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

// Throws std::runtime_error if there is no libnccl.so.2, or if it is too old. Thread-safe.
const NcclLibrary& nccl_library();

// Both tables, which outlive their users.
struct DeviceLibraries {
  const NcclLibrary& nccl;
  const CudaLibrary& cuda;
};

// A failed call of NCCL: its name and the reason.
class NcclError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws NcclError unless `result` is ncclSuccess or ncclInProgress. `comm` may be null.
void check(const NcclLibrary& nccl, ncclResult_t result, const char* call, ncclComm_t comm);

}  // namespace sailor
