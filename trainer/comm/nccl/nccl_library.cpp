#include "trainer/comm/nccl/nccl_library.h"

#include <fmt/format.h>

#include "trainer/comm/nccl/shared_library.h"

namespace sailor {
namespace {

constexpr int kOldestVersion = NCCL_VERSION(2, 14, 0);

NcclLibrary load_nccl() {
  const SharedLibrary library("libnccl.so.2");
  NcclLibrary nccl{};
  library.find("ncclGetVersion", nccl.get_version);
  int version = 0;
  if (nccl.get_version(&version) != ncclSuccess || version < kOldestVersion) {
    throw std::runtime_error(
        fmt::format("libnccl.so.2 is version {}, which is older than {}", version, kOldestVersion));
  }
  library.find("ncclGetUniqueId", nccl.get_unique_id);
  library.find("ncclCommInitRankConfig", nccl.comm_init);
  library.find("ncclCommGetAsyncError", nccl.comm_get_async_error);
  library.find("ncclCommFinalize", nccl.comm_finalize);
  library.find("ncclCommDestroy", nccl.comm_destroy);
  library.find("ncclCommAbort", nccl.comm_abort);
  library.find("ncclGroupStart", nccl.group_start);
  library.find("ncclGroupEnd", nccl.group_end);
  library.find("ncclAllReduce", nccl.all_reduce);
  library.find("ncclReduceScatter", nccl.reduce_scatter);
  library.find("ncclAllGather", nccl.all_gather);
  library.find("ncclReduce", nccl.reduce);
  library.find("ncclBroadcast", nccl.broadcast);
  library.find("ncclSend", nccl.send);
  library.find("ncclRecv", nccl.recv);
  library.find("ncclGetErrorString", nccl.get_error_string);
  library.find("ncclGetLastError", nccl.get_last_error);
  return nccl;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary nccl = load_nccl();
  return nccl;
}

void check(const NcclLibrary& nccl, ncclResult_t result, const char* call, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const last = nccl.get_last_error(comm);
  throw NcclError(last && *last ? fmt::format("{}: {} ({})", call, nccl.get_error_string(result), last)
                                : fmt::format("{}: {}", call, nccl.get_error_string(result)));
}

}  // namespace sailor
