#include "planner/process/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace sailor {
namespace {

struct FileActions {
  posix_spawn_file_actions_t value;
  FileActions() { posix_spawn_file_actions_init(&value); }
  ~FileActions() { posix_spawn_file_actions_destroy(&value); }
};

struct Attributes {
  posix_spawnattr_t value;
  explicit Attributes(bool own_group = false) {
    posix_spawnattr_init(&value);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&value, &none);
    posix_spawnattr_setsigdefault(&value, &all);
    const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;  // whose number is 0: that of the process
    posix_spawnattr_setflags(&value,
                             static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  }
  ~Attributes() { posix_spawnattr_destroy(&value); }
};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

pid_t spawn(const std::vector<std::string>& argv, const SpawnOptions& options) {
  FileActions actions;
  posix_spawn_file_actions_addopen(&actions.value, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!options.output_file.empty()) {
    posix_spawn_file_actions_addopen(&actions.value, STDOUT_FILENO, options.output_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions.value, STDOUT_FILENO, STDERR_FILENO);
  }
  if (options.stdout_descriptor >= 0)
    posix_spawn_file_actions_adddup2(&actions.value, options.stdout_descriptor, STDOUT_FILENO);
  Attributes attributes(options.own_group);
  const std::vector<std::string> environment = merged_environment(options.environment);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv.at(0).c_str(), &actions.value, &attributes.value,
                                 pointers(argv).data(), pointers(environment).data());
  if (error != 0) throw std::runtime_error(fmt::format("cannot start {}: {}", argv[0], std::strerror(error)));
  return pid;
}

void become_program(std::vector<std::string> argv) {
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words.front(), words.data());
  throw std::runtime_error(fmt::format("cannot start {}: {}", argv.front(), std::strerror(errno)));
}

FileDescriptor memory_file(const char* name) {
  FileDescriptor file(memfd_create(name, MFD_CLOEXEC));
  if (!file.valid())
    throw std::runtime_error(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
  return file;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  lseek(descriptor, 0, SEEK_SET);
  for (ssize_t n; (n = read(descriptor, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<size_t>(n));
  return text;
}

int run_with_output(const std::vector<std::string>& argv, const std::function<void(std::string_view)>& told) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const FileDescriptor output(pipe[0]);
  FileDescriptor input(pipe[1]);
  FileActions actions;
  posix_spawn_file_actions_adddup2(&actions.value, input.get(), STDOUT_FILENO);
  Attributes attributes;
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv.at(0).c_str(), &actions.value, &attributes.value,
                                 pointers(argv).data(), environ);
  if (error != 0) throw std::runtime_error(fmt::format("cannot start {}: {}", argv[0], std::strerror(error)));
  input.reset();
  int status = 0;
  const auto reap = [&] {
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  };
  try {
    std::array<char, 4096> buffer{};
    for (ssize_t n; (n = read(output.get(), buffer.data(), buffer.size())) > 0;)
      told({buffer.data(), static_cast<size_t>(n)});
  } catch (...) {
    kill(pid, SIGKILL);
    reap();
    throw;
  }
  reap();
  return status;
}

std::string run_and_read(const std::vector<std::string>& argv) {
  std::string output;
  const int status = run_with_output(argv, [&](std::string_view piece) { output += piece; });
  if (status != 0) throw std::runtime_error(fmt::format("{} {}", argv[0], describe_wait_status(status)));
  return output;
}

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(wait_status),
                       strsignal(WTERMSIG(wait_status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(wait_status));
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw std::runtime_error(fmt::format("cannot become a subreaper: {}", std::strerror(errno)));
}

std::vector<pid_t> child_processes() {
  std::vector<pid_t> children;
  // A process's children are listed by the thread that made them.
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(thread.path() / "children");
    for (pid_t pid; list >> pid;) children.push_back(pid);
  }
  return children;
}

void end_all_children(double grace_s) {
  using Clock = std::chrono::steady_clock;
  const auto kill_at = Clock::now() + std::chrono::duration<double>(grace_s);
  for (const pid_t pid : child_processes()) kill(pid, SIGTERM);
  while (true) {
    pid_t reaped;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0 && errno == ECHILD) return;
    if (Clock::now() > kill_at) {
      for (const pid_t pid : child_processes()) kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace sailor
