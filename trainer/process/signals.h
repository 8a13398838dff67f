// Signals as file descriptors for an event loop, instead of signal handlers.
#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

namespace sailor {

// Signals that ask a job to stop. The last two mean that it should go on in another job: users send them
// ahead of a time limit (sbatch --signal).
inline constexpr int kSignalsToStop[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
constexpr bool asks_to_continue(int number) {
  return number == SIGUSR1 || number == SIGUSR2;
}

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
