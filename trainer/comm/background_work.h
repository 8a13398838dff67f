// Work that runs in order beside a rank's computation, such as reductions: on a thread of its own, or on the
// device's stream for gradients.
//
//     work.push([&] { group->all_reduce(..., device.gradients()); });
//     const BackgroundWork::Point sums = work.point();
//     compute();
//     work.wait(sums);              // now computation may use them
//
// Work begins when what was computed before push() is done. On a device push() and wait() only enqueue. After
// work that threw on the thread, nothing runs until a wait has rethrown the exception; on a device push()
// itself throws. One thread per object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "trainer/comm/device.h"
#include "trainer/comm/work_queue.h"

namespace sailor {

class BackgroundWork {
 public:
  // `device` outlives the object.
  explicit BackgroundWork(Device& device) : device_(device) {}
  // Work that runs must be able to end: abort its communicators first unless idle().
  ~BackgroundWork() = default;

  void push(std::function<void()> work);

  // What has been pushed so far. Must not outlive the object.
  class Point {
    friend class BackgroundWork;
    int64_t pushes_ = 0;
    std::shared_ptr<StreamPoint> on_device_{};  // undefined: it has been reached
  };
  Point point();
  // Computation that follows waits for it, or for everything.
  void wait(const Point& point);
  void wait();
  // Was everything waited for, or is it done?
  bool idle();

 private:
  Device& device_;
  bool enqueued_ = false;             // on a device, since the last wait()
  std::unique_ptr<WorkQueue> queue_;  // once something was pushed, unless it is on a device
};

}  // namespace sailor
