#include "trainer/checkpoint/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "planner/scheduler/scheduler.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr const char* kRunLine = "\nrun ";

// The holder of the lock, for people, and its run in a second line, if any.
std::string this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string job = own_job_id(site_scheduler());
  const char* run = std::getenv("SAILOR_RUN_DIRECTORY");
  return fmt::format("{}process {} on {}{}", job.empty() ? "" : fmt::format("job {}, ", job), getpid(),
                     host.data(), run != nullptr ? std::string(kRunLine) + run : "");
}

std::string run_of(const std::string& holder) {
  const std::size_t line = holder.find(kRunLine);
  return line == std::string::npos ? "" : holder.substr(line + std::strlen(kRunLine));
}

std::string holder_of(int descriptor) {
  std::array<char, 4096> text{};
  const ssize_t length = pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

[[noreturn]] void fail(const char* action, const std::string& path) {
  throw std::runtime_error(fmt::format("cannot {} {}: {}", action, path, std::strerror(errno)));
}

// An open file that is closed unless it is wanted.
class LockFile {
 public:
  LockFile(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail("write", path);
  }
  ~LockFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  // False if another process has the lock.
  bool lock(const std::string& path) const {
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) fail("lock", path);
    return false;
  }
  // Whether this is still the file of that name.
  bool is_at(const std::string& path) const {
    struct stat here {
    }, there{};
    return fstat(descriptor_, &here) == 0 && stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
  }
  void write_holder(const std::string& path) const {
    const std::string text = this_process();
    if (ftruncate(descriptor_, 0) != 0 ||
        pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      fail("write", path);
  }

 private:
  int descriptor_;
};

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory) {
  create_directories_on_disk(directory);
  const std::string path = directory + "/LOCK";
  while (descriptor_ < 0) {
    LockFile file(path, O_CREAT);
    if (!file.lock(path)) {
      const std::string holder = holder_of(file.get());
      const std::string run = run_of(holder);
      if (!run.empty() && run == run_of(this_process())) {
        take_over(path);
        return;
      }
      const std::string name = holder.substr(0, holder.find('\n'));
      throw InputError({directory, 0},
                       fmt::format("checkpoints are being written here by {}; end that job, or give this one "
                                   "another checkpoint.directory",
                                   name.empty() ? "another process" : name));
    }
    if (!file.is_at(path)) continue;  // another process took it over, or removed it, meanwhile
    file.write_holder(path);
    descriptor_ = file.release();
  }
}

// The file gets a successor, locked before it gets the name. What the holder has is no longer LOCK.
void DirectoryLock::take_over(const std::string& path) {
  const std::string successor = fmt::format("{}.tmp.{}", path, getpid());
  unlink(successor.c_str());
  LockFile file(successor, O_CREAT | O_EXCL);
  file.write_holder(successor);
  if (!file.lock(successor) || rename(successor.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    unlink(successor.c_str());
    errno = reason;
    fail("write", path);
  }
  descriptor_ = file.release();
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace sailor
