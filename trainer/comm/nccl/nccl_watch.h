// The thread of a factory that polls all its communicators, to detect operations that fail while no thread
// waits for them, or while the host waits for a stream that will never continue.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/comm/nccl/nccl_member.h"

namespace sailor {

// Thread-safe, except for the destructor.
class NcclWatch {
 public:
  NcclWatch() : thread_([this] { run(); }) {}
  ~NcclWatch();
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  void add(std::shared_ptr<NcclMember> member);
  void remove(const std::shared_ptr<NcclMember>& member);
  // Polls at once.
  void wake() noexcept;
  void abort_all() noexcept;

 private:
  void run();
  std::vector<std::shared_ptr<NcclMember>> members();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<NcclMember>> members_;
  bool wanted_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last member: it uses the others
};

}  // namespace sailor
