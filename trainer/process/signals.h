// Signals as descriptors that a loop can wait on, instead of handlers.
#pragma once

#include <initializer_list>
#include <vector>

namespace sailor {

// Blocks the given signals in this process (call before threads are made) and makes them readable. Not
// thread-safe.
class SignalDescriptor {
 public:
  // Throws std::runtime_error.
  explicit SignalDescriptor(std::initializer_list<int> signals);
  ~SignalDescriptor();
  SignalDescriptor(const SignalDescriptor&) = delete;
  SignalDescriptor& operator=(const SignalDescriptor&) = delete;

  int descriptor() const { return fd_; }
  // The signals that have arrived; never blocks.
  std::vector<int> take();

 private:
  int fd_ = -1;
};

// Wakes up a loop from another thread. notify() is thread-safe.
class SelfPipe {
 public:
  SelfPipe();  // throws std::runtime_error
  ~SelfPipe();
  SelfPipe(const SelfPipe&) = delete;
  SelfPipe& operator=(const SelfPipe&) = delete;

  int descriptor() const { return fd_; }
  void notify();

 private:
  int fd_ = -1;
};

// Waits for a signal or a notification, or until `timeout_ms` have passed (-1 = for ever); returns the
// signals.
std::vector<int> wait_for_signals(SignalDescriptor& signals, SelfPipe& pipe, int timeout_ms = -1);

}  // namespace sailor
