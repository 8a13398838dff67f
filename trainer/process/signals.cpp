#include "trainer/process/signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace sailor {

SignalDescriptor::SignalDescriptor(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : signals) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::runtime_error(fmt::format("signalfd: {}", std::strerror(errno)));
}

SignalDescriptor::~SignalDescriptor() {
  close(fd_);
}

std::vector<int> SignalDescriptor::take() {
  std::vector<int> result;
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    result.push_back(static_cast<int>(info.ssi_signo));
  return result;
}

SelfPipe::SelfPipe() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw std::runtime_error(fmt::format("eventfd: {}", std::strerror(errno)));
}

SelfPipe::~SelfPipe() {
  close(fd_);
}

void SelfPipe::notify() {
  const uint64_t one = 1;
  // The counter can only be full when a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

std::vector<int> wait_for_signals(SignalDescriptor& signals, SelfPipe& pipe, int timeout_ms) {
  pollfd items[] = {{signals.descriptor(), POLLIN, 0}, {pipe.descriptor(), POLLIN, 0}};
  poll(items, 2, timeout_ms);
  uint64_t count;
  while (read(pipe.descriptor(), &count, sizeof count) > 0) {
  }
  return signals.take();
}

}  // namespace sailor
