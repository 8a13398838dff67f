// What a rank computes on, as far as order and memory go: its streams, its copies, its clock.
//
// On processors (host_device()) a call has done its work when it returns: memory is the host's, every stream
// is null, and nothing has to wait for anything. On a GPU (nccl/cuda_device.h) a call is enqueued on a stream
// and the caller goes on; what two streams have to do with each other is said with order(). Code that is
// written for the second serves the first.
//
// Streams of a rank: compute() for everything that tensors are computed with, TP collectives included;
// gradients() for the sums of gradients beside it; copies() for what leaves the device or comes to it while
// training goes on. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "trainer/comm/communicator.h"

namespace sailor {

// A point in the time of a device's compute stream.
class TimeMark {
 public:
  virtual ~TimeMark() = default;
};

class Device {
 public:
  virtual ~Device() = default;

  // Where tensors are: the index of the GPU in this process, or -1 for the host's memory.
  virtual int gpu() const { return -1; }
  // Whether what was enqueued goes on after the call that did it.
  virtual bool asynchronous() const { return false; }

  // Null: what is computed is there when the call returns.
  virtual Stream compute() const { return nullptr; }
  virtual Stream gradients() const { return nullptr; }
  virtual Stream copies() const { return nullptr; }

  // What is enqueued on `after` from now on waits for what is on `before`. Where `after` is null the caller
  // waits.
  virtual void order(Stream before, Stream after);
  // Returns when everything that is on `stream` is done.
  virtual void wait(Stream stream);
  // Between any two of the host's memory (host_memory(), or it is no copy beside anything) and the device's,
  // which must live until it is done.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream);
  // Of the host, such that the device reads and writes it by itself. Not cleared.
  virtual std::shared_ptr<char> host_memory(std::size_t bytes);

  // Now, on the compute stream.
  virtual std::shared_ptr<TimeMark> mark();
  // Waits until `to` has been reached.
  virtual double seconds_between(const TimeMark& from, const TimeMark& to);

  // Memory of the device that is taken, by whoever; 0 for the host.
  virtual int64_t used_bytes() { return 0; }
};

// Lives as long as the process.
Device& host_device();

// A device, and the factory of communicators over its memory. Both outlive who is given it.
struct DevicePlane {
  Device& device;
  CommFactory& factory;
};

}  // namespace sailor
