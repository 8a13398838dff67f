// The nodes that a job owns, as its first node sees them: name, component of a heterogeneous job, processors.
// Value types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

struct AllocatedNode {
  std::string name;
  int het_group = -1;  // component of a heterogeneous job; -1 in an ordinary one
  int cpus = 0;        // processors that the job has there; 0 = unknown
  // Job that holds it, where that is not the one that the program runs in: a helper job.
  std::string helper_job{};
};

struct Allocation {
  std::string job_id;
  std::vector<AllocatedNode> nodes;
  std::optional<int64_t> end_s{};  // when the job reaches its time limit, since 1970; nothing = it has none

  const AllocatedNode* find(const std::string& node) const;
};

// How the controller tells the remote-shell helper about nodes: NAME:HETGROUP:CPUS, comma between nodes.
std::string to_text(const std::vector<AllocatedNode>& nodes);
std::vector<AllocatedNode> parse_allocated_nodes(const std::string& text);  // throws std::runtime_error

}  // namespace sailor
