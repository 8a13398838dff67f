// The second run of sbatch as a child of the first, so that the first can check the job after its submission:
// the child's output is held back until the first run knows whether the job stays.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "planner/inputs/carried_plan.h"

namespace sailor {

class SubmissionChild {
 public:
  // Runs this program with another command line, and passes `variables` (second_life.h). Throws
  // std::runtime_error.
  SubmissionChild(const std::vector<std::string>& argv, const EnvironmentVariables& variables);
  ~SubmissionChild();
  SubmissionChild(const SubmissionChild&) = delete;
  SubmissionChild& operator=(const SubmissionChild&) = delete;

  // Waits for the first line of its standard output; empty if it ended without one. With `sbatch --wait` the
  // child continues after it.
  const std::string& first_line();
  // Passes what first_line() has read to standard output.
  void show_first_line();
  // Passes all of its output to standard output that was not passed yet, and waits for its end. Returns its
  // exit code, or 128 + the signal that ended it.
  int hand_on();
  // Ends it and discards its output.
  void discard();

 private:
  int wait();

  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;  // read so far; the first line once first_line() was called
};

}  // namespace sailor
