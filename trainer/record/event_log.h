// events.jsonl of a run directory: what happened to the processes and generations of a job, a line of JSON
// per event, with wall time (etc/doc/formats.md lists the events). Written whole lines at a time; a run that
// is started again in the same directory goes on below.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer/record/run_directory.h"

namespace sailor {

class EventLog {
 public:
  // `directory` outlives the object. Not `kept`: of a job that has no such file; nothing is written.
  explicit EventLog(const RunDirectory& directory, bool kept = true) : directory_(directory), kept_(kept) {}

  // Appends {"time": now, "event": `event`, ...`details`}. Throws std::runtime_error.
  void write(const std::string& event, const nlohmann::ordered_json& details);

 private:
  const RunDirectory& directory_;
  const bool kept_;
};

}  // namespace sailor
