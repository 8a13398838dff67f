// One ncclComm_t and the stream of its own that its messages run on.
//
// Communicators do not block here: what a call began is in progress until settled() says otherwise, and only
// then may the next call be made. Every communicator that start() made is taken, and ended by one of the
// functions below.
//
// Thread-safety: the owner's lock, but for get() and take().
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "trainer/comm/nccl/cuda_handles.h"
#include "trainer/comm/nccl/nccl_library.h"

namespace sailor {

class NcclLane {
 public:
  // The device is the calling thread's. Throws CudaError.
  explicit NcclLane(const DeviceLibraries& libraries) : libraries_(libraries), stream_(libraries.cuda) {}

  // Begins to create the communicator on `device`; members meet by `id`. Returns false when NCCL does not
  // return from that before `given_up()`; should it later, what it made is aborted. Throws NcclError,
  // CudaError.
  bool start(const ncclUniqueId& id, int size, int rank, int device, const std::function<bool()>& given_up);
  // Whether the last call has done what it began: throws NcclError when it, or what runs on the device,
  // failed. Requires a communicator.
  bool settled() const;

  ncclComm_t get() const { return communicator_.load(); }  // null before start() and after take()
  // For the one who ends it; null when somebody else has taken it.
  ncclComm_t take() { return communicator_.exchange(nullptr); }
  CudaStream& stream() { return stream_; }

 private:
  const DeviceLibraries libraries_;
  CudaStream stream_;
  std::atomic<ncclComm_t> communicator_{nullptr};
};

// Ends what a communicator has under way on `device`, and the communicator. May not return.
void abort_communicator(const DeviceLibraries& libraries, int device, ncclComm_t communicator);
// The orderly end, or an abort where that fails or takes longer than `limit`. Returns after twice that at the
// latest, and then leaves a call behind.
void finish_communicator(const DeviceLibraries& libraries, int device, ncclComm_t communicator,
                         std::chrono::milliseconds limit);

}  // namespace sailor
