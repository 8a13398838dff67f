// The results of a trace replay (replay/replay.h), for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "planner/replay/replay.h"

namespace sailor {

// A line per policy: steps, mean throughput, breakdown of the time, cost.
std::string replay_table(const JobSpec& job, const std::vector<ReplayOutcome>& outcomes, double end_s);
// The events of one policy, a line per change.
std::string replay_events(const ReplayOutcome& outcome);
// One JSON object, "sailor_replay": 1 (etc/doc/plan-result.md).
std::string replay_json(const JobSpec& job, const std::vector<ReplayOutcome>& outcomes, double end_s);

}  // namespace sailor
