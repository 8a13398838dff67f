// The device of a rank, as far as order and memory are concerned: its streams, its copies, its clock.
//
// On processors (host_device()) a call has finished its work when it returns: memory is the host's, every
// stream is null, and nothing has to wait. On a GPU (nccl/cuda_device.h) a call is enqueued on a stream and
// the caller continues; order() expresses dependencies between two streams. Code written for the second also
// works for the first.
//
// Streams of a rank: compute() for all computation on tensors, TP collectives included; gradients() for
// concurrent gradient reduction; copies() for transfers from and to the device during training. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "trainer/comm/communicator.h"

namespace sailor {

// The rank's device failed, or has too little memory: this process cannot go on, and others can.
class DeviceFailure : public std::runtime_error {
 public:
  DeviceFailure(const std::string& text, bool out_of_memory)
      : std::runtime_error(text), out_of_memory_(out_of_memory) {}
  bool out_of_memory() const { return out_of_memory_; }

 private:
  bool out_of_memory_;
};

// A point on a stream of a device: all that was enqueued there before.
class StreamPoint {
 public:
  virtual ~StreamPoint() = default;
  // Later operations on `after` wait for it. If `after` is null, the caller waits.
  virtual void order(Stream after) = 0;
};

// A point in time on a device's compute stream.
class TimeMark {
 public:
  virtual ~TimeMark() = default;
};

class Device {
 public:
  Device();
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // How many devices this process has opened so far: a GPU each time, processors once.
  static int opened();

  // Location of tensors: the index of the GPU in this process, or -1 for host memory.
  virtual int gpu() const { return -1; }
  // Does enqueued work continue after the call?
  virtual bool asynchronous() const { return false; }

  // Null: results are there when the call returns.
  virtual Stream compute() const { return nullptr; }
  virtual Stream gradients() const { return nullptr; }
  virtual Stream copies() const { return nullptr; }

  // Later operations on `after` wait for those on `before`. If `after` is null, the caller waits.
  virtual void order(Stream before, Stream after);
  // The current point of `stream`; nullptr: it has been reached.
  virtual std::unique_ptr<StreamPoint> point(Stream stream);
  // Returns when everything on `stream` is done.
  virtual void wait(Stream stream);
  // Copies between host memory (for a concurrent copy from host_memory()) and the device's, in any direction;
  // both must live until it is done.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream);
  // Host memory that the device can access directly. Not cleared.
  virtual std::shared_ptr<char> host_memory(std::size_t bytes);

  // Memory of the device, e.g. for messages. Throws DeviceFailure.
  virtual std::shared_ptr<char> device_memory(std::size_t bytes);

  // What is enqueued on `stream` from now on starts when the result is released, or after a second: the time
  // of the device then does not include that of enqueuing. Hold one stream at a time.
  virtual std::shared_ptr<void> hold(Stream stream);
  // The current point of the compute stream.
  virtual std::shared_ptr<TimeMark> mark();
  // Waits until `to` has been reached.
  virtual double seconds_between(const TimeMark& from, const TimeMark& to);

  // Memory of the device, and what all processes use of it; 0 for the host.
  virtual int64_t used_bytes() { return 0; }
  virtual int64_t total_bytes() { return 0; }

  // An error from which the device does not recover in this process, if there was one: all calls return it.
  virtual std::optional<std::string> failure() { return std::nullopt; }
};

// Lives as long as the process.
Device& host_device();

// A device, and the factory of communicators over its memory. Both outlive their users.
struct DevicePlane {
  Device& device;
  CommFactory& factory;
};

}  // namespace sailor
