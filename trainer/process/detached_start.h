// The first thing a launched rank does: it splits in two. The child becomes the trainer, in a session of its
// own; the parent stays until the child has bootstrapped and then exits with 0, so that the launcher sees its
// job done and ends, and no longer stands between the ranks and a long life. The child is adopted by the
// node's agent, and dies with it.
//
// Call before any thread exists.
#pragma once

#include <sys/types.h>

namespace sailor {

class DetachedStart {
 public:
  // Returns in the child only. The parent exits with 0 after release(), with 1 when the child ends before.
  // Throws std::runtime_error when the process cannot be split.
  DetachedStart();
  ~DetachedStart();
  DetachedStart(const DetachedStart&) = delete;
  DetachedStart& operator=(const DetachedStart&) = delete;

  // Lets the parent go, waits until the process has been adopted, and binds its life to the adopter's. Throws
  // std::runtime_error.
  void release();

 private:
  pid_t launched_ = -1;
  int pipe_ = -1;
};

}  // namespace sailor
