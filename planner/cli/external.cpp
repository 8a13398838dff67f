#include "planner/cli/external.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

namespace sailor::cli {
namespace {

namespace fs = std::filesystem;

// Programs that other programs start; users do not call them.
const std::set<std::string> kNotVerbs = {"agent", "rank", "sample"};

std::vector<fs::path> directories() {
  std::vector<fs::path> found;
  if (const char* libexec = std::getenv("SAILOR_LIBEXEC"); libexec != nullptr && *libexec != '\0') {
    found.emplace_back(libexec);
  }
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    found.push_back(self.parent_path());
    found.push_back(self.parent_path().parent_path() / "libexec" / "sailor");
  }
  return found;
}

std::vector<char*> argument_pointers(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> pointers = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0)
      throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close(ends_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2];
};

}  // namespace

std::string find_external(const std::string& verb) {
  if (verb.empty() || verb.find('/') != std::string::npos || kNotVerbs.contains(verb)) return {};
  for (const fs::path& directory : directories()) {
    fs::path path = directory / ("sailor-" + verb);
    std::error_code error;
    if (access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path, error)) return path.string();
  }
  return {};
}

std::vector<std::string> external_verbs() {
  std::set<std::string> verbs;
  for (const fs::path& directory : directories()) {
    std::error_code error;
    for (auto it = fs::directory_iterator(directory, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      std::string name = it->path().filename().string();
      if (name.starts_with("sailor-") && !find_external(name.substr(7)).empty()) verbs.insert(name.substr(7));
    }
  }
  return {verbs.begin(), verbs.end()};
}

void exec_external(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> pointers = argument_pointers(path, arguments);
  execv(path.c_str(), pointers.data());
  throw std::runtime_error(fmt::format("cannot run {}: {}", path, std::strerror(errno)));
}

std::string capture_external(const std::string& path, const std::vector<std::string>& arguments) {
  Pipe pipe;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe.writer(), STDOUT_FILENO);
  std::vector<char*> pointers = argument_pointers(path, arguments);
  pid_t child = 0;
  int error = posix_spawn(&child, path.c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(fmt::format("cannot run {}: {}", path, std::strerror(error)));
  pipe.close_writer();
  std::string output;
  char buffer[1 << 14];
  while (true) {
    ssize_t n = read(pipe.reader(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    output.append(buffer, static_cast<size_t>(n));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw std::runtime_error(fmt::format("{} was killed by signal {}", path, WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) throw ExternalFailure(path, WEXITSTATUS(status));
  return output;
}

}  // namespace sailor::cli
