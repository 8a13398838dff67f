// Writes the metrics of every step to metrics.jsonl and metrics.csv of the run directory, and to TensorBoard
// event files. Each step is complete in all of them when write() returns.
//
// A run that continues from a checkpoint continues the files. Lines of a previous run in the same directory
// stay for steps before the first step of this run, and are removed for later steps, which are trained again.
// So each step is listed once, and a run from the beginning starts with empty files. A step that is repeated
// within a run replaces its line and removes those of later steps.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/record/event_file.h"
#include "trainer/record/run_directory.h"
#include "trainer/record/step_metrics.h"

namespace sailor {

class MetricsWriter {
 public:
  // `tensorboard` is a directory whose other files stay; empty = the run directory's own. `directory` and
  // `facts` outlive the object. Throws std::runtime_error. Does not change the files of a previous run.
  MetricsWriter(const RunDirectory& directory, const StepFacts& facts, const std::string& tensorboard);

  // Throws std::runtime_error.
  void write(const StepReport& report);
  // Puts the steps so far on the disk. Throws std::runtime_error.
  void sync();

 private:
  void begin(int64_t first_step);

  const RunDirectory& directory_;
  const StepFacts& facts_;
  std::vector<std::filesystem::path> earlier_events_;  // files of previous runs in the run directory
  EventFile events_;
  int64_t last_step_ = 0;  // last written step; 0 = none
};

}  // namespace sailor
