#include "trainer/checkpoint/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "planner/spec/error.h"

namespace sailor {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const char* job = std::getenv("SLURM_JOB_ID");
  return fmt::format("{}process {} on {}", job != nullptr ? fmt::format("job {}, ", job) : "", getpid(),
                     host.data());
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw std::runtime_error(fmt::format("cannot make {}: {}", directory, error.message()));
  const std::string path = directory + "/LOCK";
  const auto fail = [&](const char* action) {
    const std::string reason = std::strerror(errno);
    if (descriptor_ >= 0) close(descriptor_);
    throw std::runtime_error(fmt::format("cannot {} {}: {}", action, path, reason));
  };
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("write");
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail("lock");
    std::array<char, 512> holder{};
    const ssize_t length = pread(descriptor_, holder.data(), holder.size() - 1, 0);
    close(descriptor_);
    throw InputError({directory, 0},
                     fmt::format("checkpoints are being written here by {}; end that job, or give this one "
                                 "another checkpoint.directory",
                                 length > 0 ? holder.data() : "another process"));
  }
  const std::string text = this_process();
  if (ftruncate(descriptor_, 0) != 0 ||
      pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    fail("write");
}

DirectoryLock::~DirectoryLock() {
  close(descriptor_);
}

}  // namespace sailor
