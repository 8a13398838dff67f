#include "spank_plugin/submission_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "planner/spec/error.h"
#include "spank_plugin/second_life.h"
#include "spank_plugin/slurm/submit_process.h"

namespace sailor {
namespace {

// What is there to read, at most a buffer; empty at the end.
std::string read_some(int descriptor) {
  char buffer[4096];
  ssize_t count = -1;
  do count = read(descriptor, buffer, sizeof buffer);
  while (count < 0 && errno == EINTR);
  return count > 0 ? std::string(buffer, static_cast<size_t>(count)) : std::string();
}

void write_all(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // no reader is left; the job is submitted anyway
    done += static_cast<size_t>(count);
  }
}

[[noreturn]] void become_second_life(int output, pid_t parent, const std::vector<std::string>& argv,
                                     const EnvironmentVariables& variables) {
  try {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // otherwise the job would go unnoticed
    if (getppid() != parent) _exit(kFailed);
    dup2(output, STDOUT_FILENO);
    leave_to_second_life(variables);
    run_again(argv);
  } catch (const std::exception& error) {
    fprintf(stderr, "sailor: %s\n", error.what());
  }
  fflush(nullptr);
  _exit(kFailed);
}

}  // namespace

SubmissionChild::SubmissionChild(const std::vector<std::string>& argv,
                                 const EnvironmentVariables& variables) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("cannot make a pipe for {}: {}", argv.front(), strerror(errno)));
  fflush(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become_second_life(ends[1], parent, argv, variables);
  const int error = errno;
  close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    close(output_);
    throw std::runtime_error(fmt::format("cannot start {}: {}", argv.front(), strerror(error)));
  }
}

SubmissionChild::~SubmissionChild() {
  discard();
}

const std::string& SubmissionChild::first_line() {
  while (text_.find('\n') == std::string::npos) {
    const std::string more = read_some(output_);
    if (more.empty()) break;
    text_ += more;
  }
  return text_;
}

void SubmissionChild::show_first_line() {
  write_all(STDOUT_FILENO, text_);
  text_.clear();
}

int SubmissionChild::hand_on() {
  show_first_line();
  while (!(text_ = read_some(output_)).empty()) show_first_line();
  return wait();
}

void SubmissionChild::discard() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  wait();
}

int SubmissionChild::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  close(output_);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace sailor
