// What the replicas of a stage exchange in every microbatch, if they share gradients or parameters (ZeRO-2
// and ZeRO-3): each layer's gradients are summed after its backward, and each layer's weights are gathered
// before its forward and before its backward. Pure.
//
// All replicas go through these rounds together (the trainer's gradient_rounds.h), so a pipeline with half of
// the microbatches goes through two in each of them.
#pragma once

#include <vector>

#include "planner/simulator/gradient_sync.h"
#include "planner/simulator/mesh_sync.h"

namespace sailor::native {

// Of one stage and microbatch.
struct RoundTimes {
  double gather_s = 0;     // of the weights, before a forward or a backward
  double reduce_s = 0;     // of the gradients
  double processor_s = 0;  // of the sums, on processors that nothing else may use meanwhile
};

// By class of pipelines, then stage. Along rings, from the times of the layer groups.
std::vector<std::vector<RoundTimes>> ring_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups,
                                                 const std::vector<SyncTimes>& times, Zero zero);

// Over a mesh: a stage's layers are summed one after the other, and a node's cards carry what all its ranks
// send in a round. Weights move as the sums do.
std::vector<std::vector<RoundTimes>> mesh_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups, const MeshSums& sums,
                                                 Zero zero, double weight_bytes_per_gradient_byte);

// What rounds add to a stage's forward and backward of a microbatch.
struct RoundDelays {
  double forward_s = 0, backward_s = 0;
};

// `rounds`: in each of the pipeline's microbatches. Where sums overlap with the backward, they and the
// gathers delay it by what they need longer, and at least by the part that the style says cannot overlap.
RoundDelays round_delays(const RoundTimes& times, double rounds, double forward_s, double backward_s,
                         const FrameworkStyle& style);

}  // namespace sailor::native
