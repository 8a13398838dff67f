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

// Of one layer and microbatch.
struct LayerRound {
  double gather_s = 0;  // of the weights, before a forward or a backward
  double reduce_s = 0;  // of the gradients
};

// Of one stage and microbatch.
struct RoundTimes {
  std::vector<LayerRound> layers;
  double processor_s = 0;  // of the sums, on processors that nothing else may use meanwhile
  double tied_s = 0;       // of sums that are left to the end of the iteration
};

// By class of pipelines, then stage. Along rings, from the times of the layer groups.
std::vector<std::vector<RoundTimes>> ring_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups,
                                                 const std::vector<SyncTimes>& times, StageKinds& kinds,
                                                 Zero zero);

// Over a mesh: a stage's layers are summed one after the other, and a node's cards carry what all its ranks
// send in a round. Weights move as the sums do. Groups of pipelines that each have a copy of the states have
// rounds of their own: of the cards of a node they take each other as much as they use in a round's
// computation, `computation_s` by group.
std::vector<std::vector<RoundTimes>> mesh_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups, const MeshSums& sums,
                                                 Zero zero, double weight_bytes_per_gradient_byte,
                                                 const std::vector<double>& computation_s);

// What a layer computes of a microbatch.
struct LayerWork {
  double forward_s = 0, backward_s = 0;
  // After its backward, before its gradients are reduced: the sum of what the ranks of a TP group have of
  // different tokens.
  double token_sum_s = 0;
};

// Of the layers of a stage, from the base times of its kind and their factor.
std::vector<LayerWork> layer_work(const CompactStage& stage, const KindTimes& times, double jitter,
                                  StageKinds& kinds, bool splits_tokens);

// Matrices that the first and the last layer share stay whole, and are summed once an iteration, in our
// trainer: their part leaves the rounds of a stage for `tied_s`.
void leave_out_tied(const CompactStage& stage, const StageKinds& kinds, RoundTimes& times);

struct RoundStage {
  RoundTimes times;
  std::vector<LayerWork> layers;  // those of `times`
  int microbatches = 1;
};

// What rounds add to a stage's forward and backward of a microbatch, in the mean of an iteration.
struct RoundDelays {
  double forward_s = 0, backward_s = 0;
};

// Of stages of the same layers, which go through the rounds together: a slower one delays the others. One
// with fewer microbatches has them in evenly spread rounds (the trainer's common_order.h).
//
// In our trainer (gradient_sync.h) reductions and gathers run one after the other, beside the computation. A
// layer's reduction may last until the backward of the next layer ends, that of the first layer through the
// next forward. Weights are gathered into two areas in turn while the layer before computes; as forwards and
// backwards alternate, the last two layers of one are there for the next. The delays are at least the part of
// the traffic that the style says cannot overlap. Other frameworks gather every layer again, and a reduction
// ends with its backward.
std::vector<RoundDelays> round_delays(const std::vector<RoundStage>& stages, const FrameworkStyle& style);

// Of a stage of a longer pipeline, alone, with `rounds` of all replicas for each of its microbatches: those
// in the pipeline's fill and drain pass while it waits. No longer than if it computed in each of them.
RoundDelays delays_alone(RoundStage stage, double rounds, const FrameworkStyle& style);

}  // namespace sailor::native
