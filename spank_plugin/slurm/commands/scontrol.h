// Parses the output of `scontrol show ... -o`: a line of KEY=VALUE pairs for a job or a node. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/scheduler/jobs.h"

namespace sailor {

// The value of the key in the line; empty if absent.
std::string scontrol_value(const std::string& line, const std::string& key);

// The value as a time (local, as Slurm prints it), in seconds since 1970; nothing if "Unknown" or absent.
std::optional<int64_t> time_in_scontrol(const std::string& line, const std::string& key);

// From `scontrol show job -d -o` and `scontrol show node -o`; nothing if the line is not a job or node.
// Without -d a job has no gpus_on.
std::optional<QueuedJob> job_in_scontrol(const std::string& line);
std::optional<NodeInfo> node_in_scontrol(const std::string& line);

}  // namespace sailor
