#include "trainer/process/detached_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace sailor {

DetachedStart::DetachedStart() : launched_(getpid()) {
  std::array<int, 2> ends{};

  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(fmt::format("cannot fork: {}", std::strerror(errno)));
  if (child > 0) {
    close(ends[1]);
    char released = 0;
    ssize_t n;
    while ((n = read(ends[0], &released, 1)) < 0 && errno == EINTR) {
    }
    _exit(n == 1 ? 0 : 1);
  }
  close(ends[0]);
  pipe_ = ends[1];
  setsid();
}

DetachedStart::~DetachedStart() {
  if (pipe_ >= 0) close(pipe_);
}

void DetachedStart::release() {
  const char released = 1;
  if (write(pipe_, &released, 1) != 1)
    throw std::runtime_error("the launched process ended before the bootstrap was complete");
  close(pipe_);
  pipe_ = -1;
  for (int i = 0; getppid() == launched_; ++i) {
    if (i == 10000) throw std::runtime_error("the launched process does not end after the bootstrap");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const pid_t adopter = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (adopter == 1 || getppid() != adopter)
    throw std::runtime_error("no agent adopted this rank: it would outlive the job");
}

}  // namespace sailor
