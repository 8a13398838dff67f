// The right to write checkpoints into a directory, which one run of a job has at a time: a lock on the file
// LOCK in it, which says who that is. The operating system takes it back from a process that ends, however it
// ends. Of processes of one run (the same SAILOR_RUN_DIRECTORY) the next one takes it from the one before,
// which may hang, or run on a node that nobody reaches any more.
#pragma once

#include <string>

namespace sailor {

class DirectoryLock {
 public:
  // Makes the directory when it is not there. Throws InputError naming the holder when another run has it,
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
