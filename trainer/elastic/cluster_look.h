// Queries the live cluster without blocking the controller: a child process (`sailor-cluster`) prints what a
// new job could get now. Slurm may answer late, or not at all. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/process/file_descriptor.h"
#include "planner/spec/snapshot.h"

namespace sailor {

class ClusterLook {
 public:
  // Errors of the program go to `log_file`.
  explicit ClusterLook(std::string log_file) : log_file_(std::move(log_file)) {}

  bool under_way() const { return child_ > 0; }
  // The last program has printed a snapshot.
  bool found_more() const { return found_more_; }
  // Starts `command`, which prints a snapshot in YAML, as a child of this process. The code that reaps
  // children calls ended(). Throws std::runtime_error.
  void start(const std::vector<std::string>& command);
  // Returns whether `child` is this child. If so, `snapshot` is its output, or nothing if it failed. A
  // program that prints nothing has found nothing new: `snapshot` is then the last one.
  bool ended(pid_t child, int wait_status, std::optional<Snapshot>& snapshot);

 private:
  std::string log_file_;
  FileDescriptor printed_;
  pid_t child_ = -1;
  bool found_more_ = false;
  std::optional<Snapshot> last_;
};

}  // namespace sailor
