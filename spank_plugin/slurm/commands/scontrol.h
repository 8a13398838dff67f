// What `scontrol show ... -o` prints: a line of KEY=VALUE pairs for a job or a node. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/scheduler/jobs.h"

namespace sailor {

// The value of that key in the line; empty when it is not there.
std::string scontrol_value(const std::string& line, const std::string& key);

// The same as a point in time (local, as Slurm prints it), in seconds since 1970; nothing when it is
// "Unknown" or absent.
std::optional<int64_t> time_in_scontrol(const std::string& line, const std::string& key);

// Of `scontrol show job -o` and `scontrol show node -o`; nothing when the line is of no job or node.
std::optional<QueuedJob> job_in_scontrol(const std::string& line);
std::optional<NodeInfo> node_in_scontrol(const std::string& line);

}  // namespace sailor
