// Places TP groups on nodes for the rivals of the search, without planner/plan/place.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/snapshot.h"

namespace sailor::bench {

// GPUs of one node that make up a TP group.
struct GpuGroup {
  const SnapshotNode* node = nullptr;
  std::vector<int> gpus;
};
// Free GPUs of the types and zones as TP groups of one degree, in the order of zones, types and node names.
// The rest of a node is unused. The groups point into the snapshot.
std::vector<GpuGroup> tp_groups(const Snapshot& snapshot, const std::vector<std::string>& types,
                                const std::vector<std::string>& zones, int tp);
// Sets the stage's type, zone, node and GPUs from the group, and its TP degree so that it has as many.
void put(PlanStage& stage, const GpuGroup& group);

// The free GPUs of a cluster while a plan is placed stage by stage.
class NodeFiller {
 public:
  // `snapshot` must outlive it.
  explicit NodeFiller(const Snapshot& snapshot);

  // Marks the GPUs of the plan's stages as used.
  void take(const Plan& plan);
  // Gives the stage free GPUs of its type and zone for its shape: on the node `near` if it has them, else
  // on the node with the fewest free GPUs that has them. False if none has.
  bool fill(PlanStage& stage, const std::string& near);

 private:
  struct Node {
    const SnapshotNode* node;
    std::vector<int> free;
  };
  std::map<std::string, Node> nodes_;  // by name
};

}  // namespace sailor::bench
