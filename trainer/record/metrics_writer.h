// Writes every step's figures where people look for them: metrics.jsonl and metrics.csv of the run directory,
// and TensorBoard event files. Each step is complete in all of them when write() returns.
//
// A run that goes on from a checkpoint goes on in the files too: what an earlier run in the same directory
// wrote of the steps before its first one stays, and what it wrote of later steps, which are trained again,
// goes away. So each step is there once, and a run from the beginning finds the files empty. A step that is
// trained again in the same run replaces what was written of it and of later ones.
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
  // `facts` outlive the object. Throws std::runtime_error. Changes nothing of an earlier run.
  MetricsWriter(const RunDirectory& directory, const StepFacts& facts, const std::string& tensorboard);

  // Throws std::runtime_error.
  void write(const StepReport& report);

 private:
  void begin(int64_t first_step);

  const RunDirectory& directory_;
  const StepFacts& facts_;
  std::vector<std::filesystem::path> earlier_events_;  // of the run directory's own, by earlier runs
  EventFile events_;
  int64_t last_step_ = 0;  // that was written; 0 = none
};

}  // namespace sailor
