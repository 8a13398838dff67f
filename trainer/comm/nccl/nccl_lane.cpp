#include "trainer/comm/nccl/nccl_lane.h"

#include <exception>
#include <mutex>
#include <thread>

#include "trainer/comm/nccl/call_with_limit.h"

namespace sailor {

bool NcclLane::start(const ncclUniqueId& id, int size, int rank, int device,
                     const std::function<bool()>& given_up) {
  struct Start {
    std::mutex mutex;
    bool left_behind = false;
    ncclComm_t communicator = nullptr;
    std::exception_ptr failure;
  };
  const auto start = std::make_shared<Start>();
  const auto call = [start, libraries = libraries_, max_ctas = max_ctas_, id, size, rank, device] {
    ncclComm_t communicator = nullptr;
    std::exception_ptr failure;
    try {
      check(libraries.cuda, libraries.cuda.set_device(device), "cudaSetDevice");
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 0)
      if (max_ctas > 0) config.maxCTAs = max_ctas;
#endif
      check(libraries.nccl, libraries.nccl.comm_init(&communicator, size, id, rank, &config),
            "ncclCommInitRankConfig", nullptr);
    } catch (...) {
      failure = std::current_exception();
    }
    bool left_behind = false;
    {
      const std::lock_guard lock(start->mutex);
      start->communicator = communicator;
      start->failure = failure;
      left_behind = start->left_behind;
    }
    if (left_behind && communicator) abort_communicator(libraries, device, communicator);
  };
  const bool returned = call_with_limit(call, std::chrono::steady_clock::time_point::max(), given_up);
  const std::lock_guard lock(start->mutex);
  start->left_behind = true;
  communicator_ = start->communicator;  // also of a call that failed, or returned just now
  if (start->failure) std::rethrow_exception(start->failure);
  return returned;
}

bool NcclLane::settled() const {
  ncclResult_t state = ncclSuccess;
  const ncclComm_t communicator = get();
  check(libraries_.nccl, libraries_.nccl.comm_get_async_error(communicator, &state), "ncclCommGetAsyncError",
        communicator);
  check(libraries_.nccl, state, "asynchronous error of NCCL", communicator);
  return state != ncclInProgress;
}

void abort_communicator(const DeviceLibraries& libraries, int device, ncclComm_t communicator) {
  static_cast<void>(libraries.cuda.set_device(device));
  static_cast<void>(libraries.nccl.comm_abort(communicator));  // there is nothing left to try
}

void finish_communicator(const DeviceLibraries& libraries, int device, ncclComm_t communicator,
                         std::chrono::milliseconds limit) {
  struct Ending {
    // the thread that sets it to false owns the communicator from then on
    std::atomic<bool> finalizing{true};
    std::atomic<bool> late{false};
  };
  const auto ending = std::make_shared<Ending>();
  const auto finish = [ending, libraries, device, communicator] {
    const NcclLibrary& nccl = libraries.nccl;
    static_cast<void>(libraries.cuda.set_device(device));
    ncclResult_t state = nccl.comm_finalize(communicator);
    if (!ending->finalizing.exchange(false)) return;
    while (state == ncclInProgress && !ending->late) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (nccl.comm_get_async_error(communicator, &state) != ncclSuccess) state = ncclInternalError;
    }
    static_cast<void>(state == ncclSuccess ? nccl.comm_destroy(communicator) : nccl.comm_abort(communicator));
  };
  const auto until = std::chrono::steady_clock::now() + limit;
  if (call_with_limit(finish, until)) return;
  ending->late = true;
  if (ending->finalizing.exchange(false))
    call_with_limit([=] { abort_communicator(libraries, device, communicator); }, until + limit);
}

}  // namespace sailor
