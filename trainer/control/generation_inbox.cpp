#include "trainer/control/generation_inbox.h"

#include <algorithm>
#include <utility>

namespace sailor {

bool GenerationInbox::over() const {
  return interrupted_ >= entered_ || (newest_ && newest_->number > entered_);
}

// With the lock held, so that leave() waits for it: aborting only wakes up threads.
void GenerationInbox::abort_if_over(std::unique_lock<std::mutex>& lock) {
  if (abort_ && over()) std::exchange(abort_, nullptr)();
  changed_.notify_all();
  lock.unlock();
}

void GenerationInbox::receive(const ControlMessage& message) {
  std::unique_lock lock(mutex_);
  if (const auto* generation = std::get_if<Generation>(&message)) {
    if (!newest_ || generation->number > newest_->number) newest_ = *generation;
  } else if (const auto* interrupt = std::get_if<Interrupt>(&message)) {
    if (interrupt->after_step > 0) {
      orderly_ = *interrupt;
    } else {
      interrupted_ = std::max(interrupted_, interrupt->generation);
    }
  } else if (const auto* lease = std::get_if<Lease>(&message)) {
    running_ = std::max(running_, lease->generation);
  } else {
    return;
  }
  abort_if_over(lock);
}

Generation GenerationInbox::wait_for_newer_than(int number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return newest_ && newest_->number > number; });
  return *newest_;
}

void GenerationInbox::enter(int number, std::function<void()> abort) {
  std::unique_lock lock(mutex_);
  entered_ = number;
  abort_ = std::move(abort);
  abort_if_over(lock);
}

void GenerationInbox::leave() {
  std::lock_guard lock(mutex_);
  abort_ = nullptr;
}

int GenerationInbox::entered() const {
  std::lock_guard lock(mutex_);
  return entered_;
}

bool GenerationInbox::interrupted() const {
  std::lock_guard lock(mutex_);
  return over();
}

void GenerationInbox::wait_until_interrupted() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over() || (orderly_ && orderly_->generation == entered_); });
}

bool GenerationInbox::wait_until_running(int number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ >= number || over(); });
  return running_ >= number;
}

std::optional<Interrupt> GenerationInbox::stop_after_step() const {
  std::lock_guard lock(mutex_);
  if (orderly_ && orderly_->generation == entered_) return orderly_;
  return std::nullopt;
}

}  // namespace sailor
