// Signals as file descriptors for an event loop, instead of signal handlers.
#pragma once

#include <initializer_list>
#include <vector>

namespace sailor {

// Blocks the given signals in this process and makes them readable. Construct before starting threads. Not
// thread-safe.
class SignalDescriptor {
 public:
  // Throws std::runtime_error.
  explicit SignalDescriptor(std::initializer_list<int> signals);
  ~SignalDescriptor();
  SignalDescriptor(const SignalDescriptor&) = delete;
  SignalDescriptor& operator=(const SignalDescriptor&) = delete;

  int descriptor() const { return fd_; }
  // Returns the pending signals; never blocks.
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

// Waits for a signal or a notification, at most `timeout_ms` (-1 = no limit). Returns the signals.
std::vector<int> wait_for_signals(SignalDescriptor& signals, SelfPipe& pipe, int timeout_ms = -1);

}  // namespace sailor
