// Nodes for which a job queues while it trains on others: it could have waited for them, and started now
// instead. Sent with the job (planner/inputs/carried_plan.h). Value type; pure.
#pragma once

#include <string>
#include <vector>

#include "planner/spec/snapshot.h"

namespace sailor {

struct QueuedNodes {
  std::string partition, zone, gpu_type;
  int gpus = 0;   // of a node
  int nodes = 0;  // how many it asks for

  bool operator==(const QueuedNodes&) const = default;
  // Whether the node is one of this kind.
  bool are_like(const SnapshotNode& node) const;
};

// These nodes by kind, without as many of each kind as there are in `without`.
std::vector<QueuedNodes> queued_nodes(const std::vector<const SnapshotNode*>& nodes,
                                      const std::vector<const SnapshotNode*>& without);

std::string to_json(const std::vector<QueuedNodes>& queued);
std::vector<QueuedNodes> parse_queued_nodes(const std::string& json,
                                            const std::string& source);  // throws InputError

}  // namespace sailor
