// Data plane `nccl`: ranks are processes with one GPU each, buffers are in device memory.
//
//     SocketFactory sockets(rank, endpoints, secret, listener, {}, "nccl." + scope);
//     NcclFactory factory(sockets, device);
//     auto dp = factory.create("gradients/0", {0, 4});
//     dp->all_reduce(gradient, n, ElementType::bf16, ReduceOp::sum, stream);     // enqueued on `stream`
//     auto sent = link->send(out, n, ElementType::bf16, 1, stream);              // after what is on `stream`
//     sent->wait_on(stream);                                                     // before what comes on it
//     dp->settle();                                                              // before results are used
//
// Streams: a `stream` is a cudaStream_t. Collectives run on it. Messages start when earlier operations on it
// have completed, and run on streams of the communicator; use Work::wait_on() to wait for them. Null is not
// the legacy default stream (that is cudaStreamLegacy): it means that buffers are ready now, the operation
// runs on a stream of the communicator, and the host waits for collectives, as on the planes in host memory.
// Collectives of overlapping communicators must be enqueued in the same order by all ranks, or on one stream.
//
// A group with only collectives (CommUse) has one communicator of NCCL, others have two. One in the
// background occupies at most 16 of the device's multiprocessors, unless NCCL_MAX_CTAS is set.
//
// Messages of one direction, to higher or to lower ranks of the communicator, are sent one after the other in
// the order of posting; those of one exchange(), and those of different directions, run concurrently.
//
// Failure: NCCL itself detects neither a lost member inside a node nor mismatched operations. So every
// communicator has one of the factory below, over which its members tell when they leave or fail, and their
// current operation when the deadline has passed: within a fraction of a second after one has failed all
// have, and a CommError names the member that does not answer or is in another operation, and which. Members
// that create communicators in different orders do not find each other there, and create() names them. The
// deadline applies to collectives, and to messages that a thread waits for, from the last progress of the
// communicator. Results may be garbage until they are settled: see settle(). After a failure, destroy the
// communicator and create another one under a new name. An abort that does not return at once, because it
// waits for what else runs on the device, aborts the rank's other communicators.
//
// A call of NCCL that does not return is ended by ncclCommAbort from another thread, or abandoned if there is
// nothing to abort yet. Only a call of the CUDA runtime that does not return blocks the rank: that is what
// its lease is for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

struct DeviceLibraries;

class NcclFactory : public CommFactory {
 public:
  // `below` has the same ranks, and its own names; abort() aborts it, too. It outlives the factory. `device`
  // is the index of the rank's GPU in this process. Throws std::runtime_error if libnccl or libcudart are
  // missing.
  NcclFactory(CommFactory& below, int device, CommOptions options = {});
  // With other libraries, which live as long as the process.
  NcclFactory(CommFactory& below, int device, CommOptions options, const DeviceLibraries& libraries);
  ~NcclFactory() override;

  int rank() const override;
  int size() const override;
  void abort() noexcept override;

 protected:
  std::unique_ptr<Communicator> make(const std::string& name, const std::vector<int>& ranks,
                                     CommUse use) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
