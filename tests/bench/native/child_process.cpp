#include "tests/bench/native/child_process.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <stdexcept>

namespace sailor::bench {
namespace {

// Writes what the function returns; the exit status says whether all went well.
int run_here(const std::function<std::string()>& function, int to) {
  try {
    const std::string text = function();
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = write(to, text.data() + done, text.size() - done);
      if (n <= 0) return 1;
      done += static_cast<size_t>(n);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace

ChildOutput run_in_child(const std::function<std::string()>& function) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    _exit(run_here(function, ends[1]));
  }
  close(ends[1]);
  ChildOutput out;
  char buffer[65536];
  for (ssize_t n = 0; child > 0 && (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    out.text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child)
    throw std::runtime_error("cannot fork a process");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("a process of the bench failed, status " + std::to_string(status));
  out.rss_mb = static_cast<double>(used.ru_maxrss) / 1024;
  return out;
}

double process_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace sailor::bench
