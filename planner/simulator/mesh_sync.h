// Gradient sums as our own trainer's communicators do them: every member of a group sends each other member
// its part, then the sum of its own part, over ports that a rank has for itself and network cards that the
// ranks of a node share. The rank's own processor packs, adds and unpacks between the messages. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/simulator/gradient_sync.h"

namespace sailor::native {

struct MeshSums {
  std::vector<double> alone_s;      // by layer group: with the network to itself
  std::vector<double> processor_s;  // of that: the ranks' own work
  struct NodeWork {
    std::string node;
    size_t group;
    double busy_s;  // how long the group keeps the node's cards
  };
  std::vector<NodeWork> work;
  double tally_s = 0;  // two numbers that all ranks sum at the end of an iteration
};

MeshSums mesh_sums(const PlanningContext& context, const Plan& plan, const std::vector<LayerGroup>& groups);

}  // namespace sailor::native
