// Detaches a rank from the launcher. A launched rank first forks. The child becomes the trainer, in its own
// session. The parent waits until the child has bootstrapped and then exits with 0, so that the launcher ends
// and the ranks no longer depend on it. The node's agent adopts the child; the child dies with the agent.
//
// Call before starting any thread.
#pragma once

#include <sys/types.h>

namespace sailor {

class DetachedStart {
 public:
  // Returns in the child only. The parent exits with 0 after release(), or with 1 if the child ends earlier.
  // Throws std::runtime_error if fork fails.
  DetachedStart();
  ~DetachedStart();
  DetachedStart(const DetachedStart&) = delete;
  DetachedStart& operator=(const DetachedStart&) = delete;

  // Ends the parent, waits for the adoption, and ties the lifetime of this process to its new parent. Throws
  // std::runtime_error.
  void release();

 private:
  pid_t launched_ = -1;
  int pipe_ = -1;
};

}  // namespace sailor
