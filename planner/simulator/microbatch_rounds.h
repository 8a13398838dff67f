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

// What exchanges of layers take of the network cards of nodes, which others use at the same time.
struct RoundCards {
  struct Use {
    int node = 0;  // class
    double reduce_s = 0;
  };
  // By group of pipelines that share states, then layer of the model; empty: nothing is known of cards.
  std::vector<std::vector<Use>> uses;
  double gather_part = 1;  // of reduce_s
};

// Over a mesh: a stage's layers are summed one after the other, without what else is on the cards. Weights
// move as the sums do.
std::vector<std::vector<RoundTimes>> mesh_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups, const MeshSums& sums,
                                                 Zero zero, double weight_bytes_per_gradient_byte,
                                                 RoundCards& cards);

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

// Our trainer, with reductions that overlap the backward: round_replay.h has its times. Other frameworks that
// share gradients do so for every plan.
bool has_lockstep_rounds(const FrameworkStyle& style);

// What rounds add to a stage's forward and backward of a microbatch under any other style.
struct RoundDelays {
  double forward_s = 0, backward_s = 0;
};

// Of a stage with `rounds` of all replicas for each of its microbatches. Every layer is gathered again, and a
// reduction ends with its backward. The delays are at least the part of the traffic that the style says
// cannot overlap.
RoundDelays round_delays(const RoundTimes& times, const std::vector<LayerWork>& layers, double rounds,
                         const FrameworkStyle& style);

}  // namespace sailor::native
