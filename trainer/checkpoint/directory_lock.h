// The exclusive right of one run to write checkpoints into a directory: a lock on the file LOCK in it, which
// names the holder. The operating system releases it when the process ends for any reason. Among processes of
// one run (the same SAILOR_RUN_DIRECTORY) the next one takes it over from the previous one, which may hang or
// run on an unreachable node.
#pragma once

#include <string>

namespace sailor {

class DirectoryLock {
 public:
  // Creates the directory if missing. Throws InputError naming the holder when another run has the lock,
  // std::runtime_error when the directory cannot be written to.
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  void take_over(const std::string& path);

  int descriptor_ = -1;
};

}  // namespace sailor
