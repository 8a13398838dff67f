// What `scontrol show ... -o` prints: a line of KEY=VALUE pairs. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sailor {

// The value of that key in the line; empty when it is not there.
std::string scontrol_value(const std::string& line, const std::string& key);

// The same as a point in time (local, as Slurm prints it), in seconds since 1970; nothing when it is
// "Unknown" or absent.
std::optional<int64_t> time_in_scontrol(const std::string& line, const std::string& key);

}  // namespace sailor
