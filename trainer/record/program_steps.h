// What the ranks of another trainer's program write about their steps (trainer/python/sailor_steps.py), as
// reports of ranks: files rank-N.jsonl in a directory, one line of JSON per step.
//
//     {"generation": 1, "step": 12, "loss": 5.3, "step_s": 0.81, "peak_bytes": 17000000000}
//
// N is the rank in the order of the program's framework. Lines that are not of this form are skipped: the
// program is the user's. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/control/control_message.h"

namespace sailor {

class ProgramSteps {
 public:
  // Removes files of an earlier run. Throws std::runtime_error.
  explicit ProgramSteps(std::string directory);

  const std::string& directory() const { return directory_; }
  // What rank 0 has written since the last call, without the last line if it is incomplete.
  std::vector<StepReport> take();
  // The last report of every rank of that generation. Reads all files.
  std::vector<StepReport> last_of_all(int generation) const;

 private:
  const std::string directory_;
  int64_t read_bytes_ = 0;  // of rank 0's file
};

}  // namespace sailor
