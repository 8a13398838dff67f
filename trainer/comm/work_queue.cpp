#include "trainer/comm/work_queue.h"

#include <utility>

namespace sailor {

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    changed_.notify_all();
  }
  thread_.join();
}

void WorkQueue::push(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  ++pushed_;
  if (failure_) {
    ++ended_;
    return;
  }
  waiting_.push_back(std::move(work));
  changed_.notify_all();
}

void WorkQueue::wait(int64_t pushes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ >= pushes; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool WorkQueue::idle() {
  const std::lock_guard lock(mutex_);
  return !busy_ && waiting_.empty();
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    ++ended_;
    if (failure) {
      failure_ = failure;
      ended_ += static_cast<int64_t>(waiting_.size());
      waiting_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace sailor
