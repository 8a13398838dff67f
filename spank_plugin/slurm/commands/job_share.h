// What a job holds of each of its nodes, as `scontrol show job -d -o` prints it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sailor {

struct JobShare {
  int cpus = 0;
  int64_t memory_mb = 0;
  std::string gres{};  // "gpu:NAME:2(IDX:0-1)"
};

// By node, from the line of a job; without -d there is nothing.
std::map<std::string, JobShare> shares_in_scontrol(const std::string& line);

}  // namespace sailor
