// A thread of one's own for work that is to go on while the owner computes: sums of gradients. What is pushed
// runs in order, one after the other, as on a device's stream.
//
//     queue.push([&] { group->all_reduce(...); });
//     compute();
//     queue.wait();
//
// After work that threw, nothing more is run until wait() has handed the exception on. The owner's thread
// alone calls the functions; what it wrote before push() the work sees, and the other way round after wait().
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace sailor {

class WorkQueue {
 public:
  WorkQueue() : thread_([this] { run(); }) {}
  // Drops what has not begun; what has must be able to end (abort its communicators first).
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(std::function<void()> work);
  // Returns when everything that was pushed is done; throws the first exception of it.
  void wait();
  bool idle();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool busy_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace sailor
