// The right to write checkpoints into a directory, which one job has at a time: a lock on the file LOCK in
// it, which says who that is. The operating system takes it back from a process that ends, however it ends.
#pragma once

#include <string>

namespace sailor {

class DirectoryLock {
 public:
  // Makes the directory when it is not there. Throws InputError naming the holder when another one has it,
  // std::runtime_error when the directory cannot be written to.
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace sailor
