// Writes every step's figures where people look for them: metrics.jsonl and metrics.csv of the run directory,
// and TensorBoard event files. Each step is complete in all of them when write() returns.
#pragma once

#include <string>

#include "trainer/elastic/event_file.h"
#include "trainer/elastic/run_directory.h"
#include "trainer/elastic/run_metrics.h"

namespace sailor {

class MetricsWriter {
 public:
  // `tensorboard` is a directory whose other files stay; empty = the run directory's own, emptied.
  // `directory` and `facts` outlive the object. Throws std::runtime_error.
  MetricsWriter(const RunDirectory& directory, const StepFacts& facts, const std::string& tensorboard);

  void write(const StepReport& report);

 private:
  const RunDirectory& directory_;
  const StepFacts& facts_;
  EventFile events_;
};

}  // namespace sailor
