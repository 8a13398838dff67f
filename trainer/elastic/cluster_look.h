// A look at the live cluster that does not make the controller wait: a program of ours (`sailor-cluster`)
// prints what a new job could get now, and Slurm may take its time, or not answer at all. Not thread-safe.
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
  // Complaints of the program go to `log_file`.
  explicit ClusterLook(std::string log_file) : log_file_(std::move(log_file)) {}

  bool under_way() const { return child_ > 0; }
  // Starts `command`, which prints a snapshot in YAML, as a child of this process; whoever reaps children
  // hands its end to ended(). Throws std::runtime_error.
  void start(const std::vector<std::string>& command);
  // Whether that was the child. Then `snapshot` is what it printed, or nothing when it failed.
  bool ended(pid_t child, int wait_status, std::optional<Snapshot>& snapshot);

 private:
  std::string log_file_;
  FileDescriptor printed_;
  pid_t child_ = -1;
};

}  // namespace sailor
