// events.jsonl of a run directory: events of the processes and generations of a job, a line of JSON per
// event, with wall time (etc/doc/formats.md lists the events). Only whole lines are written. A run that
// restarts in the same directory appends.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer/record/run_directory.h"

namespace sailor {

class EventLog {
 public:
  // `directory` outlives the object. `kept` false: the job has no such file, and nothing is written.
  explicit EventLog(const RunDirectory& directory, bool kept = true) : directory_(directory), kept_(kept) {}

  // Appends {"time": now, "event": `event`, ...`details`}. Throws std::runtime_error.
  void write(const std::string& event, const nlohmann::ordered_json& details);

 private:
  const RunDirectory& directory_;
  const bool kept_;
};

}  // namespace sailor
