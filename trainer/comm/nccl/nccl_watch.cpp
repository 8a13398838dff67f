#include "trainer/comm/nccl/nccl_watch.h"

#include <chrono>
#include <utility>

namespace sailor {
namespace {

constexpr auto kTurn = std::chrono::milliseconds(10);

}  // namespace

NcclWatch::~NcclWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void NcclWatch::add(std::shared_ptr<NcclMember> member) {
  const std::lock_guard lock(mutex_);
  members_.push_back(std::move(member));
  changed_.notify_all();
}

void NcclWatch::remove(const std::shared_ptr<NcclMember>& member) {
  const std::lock_guard lock(mutex_);
  std::erase(members_, member);
}

void NcclWatch::wake() noexcept {
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  changed_.notify_all();
}

void NcclWatch::abort_all() noexcept {
  for (const auto& member : members()) member->abort();
}

std::vector<std::shared_ptr<NcclMember>> NcclWatch::members() {
  const std::lock_guard lock(mutex_);
  return members_;
}

void NcclWatch::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !members_.empty(); });
      changed_.wait_for(lock, kTurn, [this] { return stopping_ || wanted_; });
      if (stopping_) return;
      wanted_ = false;
    }
    bool abort_waits = false;
    for (const auto& member : members()) {
      member->look();
      abort_waits = abort_waits || member->abort_waits();
    }
    // For what the others have on the device: they cannot continue without it anyway.
    if (abort_waits) abort_all();
  }
}

}  // namespace sailor
