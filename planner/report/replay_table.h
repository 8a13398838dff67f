// What a replay of an availability trace came to (replay/replay.h), for people and for tools.
#pragma once

#include <string>
#include <vector>

#include "planner/replay/replay.h"

namespace sailor {

// A line per policy: steps, throughput over the whole time, where the time went, what it cost.
std::string replay_table(const JobSpec& job, const std::vector<ReplayOutcome>& outcomes, double end_s);
// What one policy did, a line per change.
std::string replay_events(const ReplayOutcome& outcome);
// One JSON object, "sailor_replay": 1 (etc/doc/plan-result.md).
std::string replay_json(const JobSpec& job, const std::vector<ReplayOutcome>& outcomes, double end_s);

}  // namespace sailor
