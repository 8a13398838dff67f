// Data plane `nccl`: ranks are processes with a GPU each, buffers are in the memory of their devices.
//
//     SocketFactory sockets(rank, endpoints, secret, listener, {}, "nccl." + scope);
//     NcclFactory factory(sockets, device);
//     auto dp = factory.create("gradients/0", {0, 4});
//     dp->all_reduce(gradient, n, ElementType::bf16, ReduceOp::sum, stream);     // enqueued on `stream`
//     auto sent = link->send(out, n, ElementType::bf16, 1, stream);              // after what is on `stream`
//     sent->wait_on(stream);                                                     // before what comes on it
//     dp->settle();                                                              // before results are used
//
// Streams: a `stream` is a cudaStream_t. Collectives run on it. Messages start when what is on it has
// completed, and run on streams of the communicator; Work::wait_on() leads back. Null is not the legacy
// default stream (that is cudaStreamLegacy): it says that buffers are ready now, the operation runs on a
// stream of the communicator, and the host waits for collectives, as on the planes in host memory.
// Collectives of communicators that overlap are enqueued in one order by all ranks, or on one stream.
//
// Messages of one direction, to higher or to lower ranks of the communicator, pass one after the other in the
// order in which a rank posts them; those of one exchange() and those of the two directions pass side by
// side.
//
// Failure: NCCL by itself notices neither a member that is gone, inside a node, nor members that call
// different operations. So every communicator keeps that of the factory below, over which its members
// say when they leave or fail, and what they are in when the deadline has passed: within a fraction of a
// second after one has failed all have, and a CommError names who does not answer or is in another operation,
// and what. Members that create communicators in different orders do not find each other there, and are named
// by create(). The deadline runs for collectives, and for messages that somebody waits for, from the last
// progress of the communicator. Results that were not settled may be garbage: see settle(). After a failure,
// destroy the communicator and create another under a new name.
//
// A call of NCCL that does not return ends by ncclCommAbort from another thread, or is left behind where
// there is nothing to abort yet. Only a call of the CUDA runtime that does not return holds up the rank: for
// that it has its lease.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

struct DeviceLibraries;

class NcclFactory : public CommFactory {
 public:
  // `below` has the same ranks, and names of its own; abort() aborts it, too. It outlives the factory.
  // `device` is the index of the rank's GPU in this process. Throws std::runtime_error where libnccl or
  // libcudart are missing.
  NcclFactory(CommFactory& below, int device, CommOptions options = {});
  // With other libraries, which live as long as the process.
  NcclFactory(CommFactory& below, int device, CommOptions options, const DeviceLibraries& libraries);
  ~NcclFactory() override;

  int rank() const override;
  int size() const override;
  std::unique_ptr<Communicator> create(const std::string& name, const std::vector<int>& ranks) override;
  void abort() noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
