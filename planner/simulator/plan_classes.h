// Groups equal parts of a plan: pipelines with the same stages, share and message times, which share states;
// the GPU groups ("ranks" here) of such pipelines; nodes with the same ranks. The native cost model computes
// each class once, so the cost of a prediction depends on the number of classes, not of GPUs. Value type.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/simulator/compact_plan.h"

namespace sailor::native {

struct PipelineClass {
  int pipeline = 0;  // the first pipeline of the class in the plan
  int count = 0;
  int first_rank = 0;  // class of its first GPU group; group g has class first_rank + g
  std::vector<double> send_forward_s, send_backward_s;  // by stage (or chunk), one microbatch
};

// Nodes with `count` ranks of each of these classes. A stage that is not placed has its own node.
struct NodeClass {
  std::vector<std::pair<int, int>> ranks;  // class, count on one node; ascending
  int nodes = 0;
};

struct PlanClasses {
  std::vector<int> of_pipeline;
  std::vector<PipelineClass> pipelines;
  std::vector<int> pipeline_of_rank;  // by class of ranks: class of their pipelines
  std::vector<NodeClass> nodes;
  std::vector<std::vector<std::pair<int, int>>> nodes_of_rank;  // by class: classes of nodes, count on one
  int first_node = 0;                                           // node class of the plan's first stage
  bool first_is_placed = false;
  bool several_nodes = false;
  double message_bytes = 0;  // the largest that a rank sends to another stage at once

  // Memory of find_classes().
  struct Memory {
    struct Senders {  // at both ends of a boundary, if it is not within a node
      int forward = -1, backward = -1;

      bool operator==(const Senders&) const = default;
    };
    std::vector<int> forward, backward, down, up;
    std::vector<Senders> boundaries;  // by class of pipelines, then stage
    std::vector<size_t> first_boundary;
    std::vector<uint64_t> hash, hashes, rank_hash;
    std::vector<char> is_used;
    std::vector<int> used, single, class_of, shown;
  } memory;

  int ranks() const { return static_cast<int>(pipeline_of_rank.size()); }
  int group_of(int rank) const {
    return rank - pipelines[static_cast<size_t>(pipeline_of_rank[static_cast<size_t>(rank)])].first_rank;
  }
};

// Fills `out`, whose memory is reused. Throws InputError when a link between neighbouring stages is not
// profiled.
void find_classes(const CompactPlan& plan, StageKinds& kinds, PlanClasses& out);

// Consecutive layers with the same stages: their gradients are reduced together.
struct LayerGroup {
  int first_layer = 0;
  int end_layer = 0;
  std::vector<int> stage_of;  // by class of pipelines, index of the stage (or chunk) within it
};
// The class of ranks that hold the layers of a group in a class of pipelines.
size_t rank_with(const LayerGroup& layers, const CompactPlan& plan, const PlanClasses& classes, size_t c);
// Fills `out` like find_classes().
void find_layer_groups(const CompactPlan& plan, const PlanClasses& classes, std::vector<LayerGroup>& out);

}  // namespace sailor::native
