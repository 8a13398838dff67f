// A thread for work that runs while its owner computes: gradient reduction. Work runs in the order of push(),
// like on a device's stream.
//
//     queue.push([&] { group->all_reduce(...); });
//     compute();
//     queue.wait();
//
// After work that threw, nothing runs until a wait has rethrown the exception. Only the owner's thread calls
// the functions; the work sees what the owner wrote before push(), and the owner sees what the work wrote
// after wait().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace sailor {

class WorkQueue {
 public:
  WorkQueue() : thread_([this] { run(); }) {}
  // Drops work that has not started; running work must be able to end (abort its communicators first).
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(std::function<void()> work);
  // Number of pushes so far.
  int64_t pushed() const { return pushed_; }
  // Returns when the work of the first `pushes` pushes, or all work, is done; throws its first exception.
  void wait(int64_t pushes);
  void wait() { wait(pushed_); }
  bool idle();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  int64_t pushed_ = 0;  // of the owner's thread alone
  int64_t ended_ = 0;   // of these
  bool busy_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last member: it uses the others
};

}  // namespace sailor
