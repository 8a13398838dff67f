// One ncclComm_t, and the stream for its messages.
//
// Communicators are non-blocking: a call is in progress until settled() returns true, and only then may the
// next call be made. Every communicator that start() creates is taken once, and ended by one of the functions
// below.
//
// Thread-safety: the owner's lock, except for get() and take().
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
  // `max_ctas` limits the multiprocessors that it occupies; 0 = NCCL's default. The device must be current.
  // Throws CudaError.
  NcclLane(const DeviceLibraries& libraries, int max_ctas)
      : libraries_(libraries), max_ctas_(max_ctas), stream_(libraries.cuda) {}

  // Starts to create the communicator on `device`; members share `id`. Returns false if NCCL does not return
  // before `given_up()`; if it does later, the new communicator is aborted. Throws NcclError, CudaError.
  bool start(const ncclUniqueId& id, int size, int rank, int device, const std::function<bool()>& given_up);
  // Has the last call finished? Throws NcclError when it, or what runs on the device, failed. Requires a
  // communicator.
  bool settled() const;

  ncclComm_t get() const { return communicator_.load(); }  // null before start() and after take()
  // Takes the communicator to end it; null if somebody else has taken it.
  ncclComm_t take() { return communicator_.exchange(nullptr); }
  CudaStream& stream() { return stream_; }

 private:
  const DeviceLibraries libraries_;
  const int max_ctas_;
  CudaStream stream_;
  std::atomic<ncclComm_t> communicator_{nullptr};
};

// Ends the operations of a communicator on `device`, and the communicator. May not return.
void abort_communicator(const DeviceLibraries& libraries, int device, ncclComm_t communicator);
// Ends it in an orderly way, or by an abort if that fails or takes longer than `limit`. Returns after twice
// that at the latest, and then abandons a call.
void finish_communicator(const DeviceLibraries& libraries, int device, ncclComm_t communicator,
                         std::chrono::milliseconds limit);

}  // namespace sailor
