// The nodes that a job owns, as its first node sees them: name, component of a heterogeneous job, processors,
// GPUs. Value types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

struct AllocatedNode {
  std::string name;
  int het_group = -1;  // component of a heterogeneous job; -1 in an ordinary one
  int cpus = 0;        // processors of the job on this node; 0 = unknown
  // GPUs of the job on this node, which each step must ask for; 0 = none, or unknown.
  int gpus = 0;
};

struct Allocation {
  std::string job_id;
  std::vector<AllocatedNode> nodes;
  std::optional<int64_t> end_s{};  // time limit of the job, seconds since 1970; nothing = none

  const AllocatedNode* find(const std::string& node) const;
};

// Text form for the remote-shell helper: NAME:HETGROUP:CPUS:GPUS, separated by commas.
std::string to_text(const std::vector<AllocatedNode>& nodes);
std::vector<AllocatedNode> parse_allocated_nodes(const std::string& text);  // throws std::runtime_error

}  // namespace sailor
