// sbatch's second life as a child of the first, so that the first can look at the job once it is submitted:
// what the child prints is held back until the first life knows whether the job stays.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "planner/inputs/carried_plan.h"

namespace sailor {

class SubmissionChild {
 public:
  // Runs this very program with another command line, leaving it `variables` (second_life.h). Throws
  // std::runtime_error.
  SubmissionChild(const std::vector<std::string>& argv, const EnvironmentVariables& variables);
  ~SubmissionChild();
  SubmissionChild(const SubmissionChild&) = delete;
  SubmissionChild& operator=(const SubmissionChild&) = delete;

  // Waits for the first line of its standard output; empty when it ended without one. With `sbatch --wait`
  // the child lives on after it.
  const std::string& first_line();
  // Hands everything that it prints on to standard output, and waits for its end. Returns its exit code, 128
  // + the signal that ended it.
  int hand_on();
  // Ends it and forgets what it printed.
  void discard();

 private:
  int wait();

  pid_t pid_ = -1;
  int output_ = -1;
  std::string text_;  // read so far; the first line once first_line() was called
};

}  // namespace sailor
