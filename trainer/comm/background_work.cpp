#include "trainer/comm/background_work.h"

#include <utility>

namespace sailor {

void BackgroundWork::push(std::function<void()> work) {
  if (!device_.asynchronous()) {
    if (!queue_) queue_ = std::make_unique<WorkQueue>();
    return queue_->push(std::move(work));
  }
  enqueued_ = true;
  device_.order(device_.compute(), device_.gradients());
  work();
}

BackgroundWork::Point BackgroundWork::point() {
  Point point;
  if (device_.asynchronous()) {
    point.on_device_ = device_.point(device_.gradients());
  } else if (queue_) {
    point.pushes_ = queue_->pushed();
  }
  return point;
}

void BackgroundWork::wait(const Point& point) {
  if (point.on_device_) point.on_device_->order(device_.compute());
  if (queue_) queue_->wait(point.pushes_);
}

void BackgroundWork::wait() {
  if (queue_) queue_->wait();
  if (enqueued_) device_.order(device_.gradients(), device_.compute());
  enqueued_ = false;
}

bool BackgroundWork::idle() {
  return queue_ ? queue_->idle() : !enqueued_;
}

}  // namespace sailor
