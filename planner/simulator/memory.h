// Memory of one rank, by source, under a framework's style. Pure.
#pragma once

#include <span>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "planner/simulator/prediction.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/offload.h"
#include "planner/spec/split_backward.h"

namespace sailor {

// Microbatches whose activations stage `stage` of `stages` holds at the same time under 1F1B.
int in_flight(int stage, int stages, int microbatches);

// Consecutive layers on a rank: the whole stage, or one of its chunks.
struct ChunkMemoryInput {
  std::span<const LayerSizes> layers;  // sizes at the stage's TP degree
  StageRecompute recompute{};
  int in_flight = 1;          // microbatches whose activations are held
  bool has_previous = false;  // another chunk or stage comes before
  bool has_next = false;
  int64_t input_elements = 0;  // of one sequence, from the previous stage
  int weight_delay = kWholeBackward;
  bool nothing_again = false;  // without what a backward computes again, as if it needed no memory then
  // By layer: how many up to and including it have the same sizes, also before the chunk; they are computed
  // at once. Empty: unknown.
  std::span<const int> alike = {};
};

struct RankMemoryInput {
  std::vector<ChunkMemoryInput> chunks;
  int microbatch = 1;      // sequences
  int microbatches = 1;    // per iteration
  int replicas = 1;        // number of replicas that reduce gradients
  bool both_ends = false;  // the rank has the first and the last layer: tied parameters count once
  Zero zero = Zero::none;  // what is sharded over the replicas
  Offload offload = Offload::none;
  int64_t tied_parameters = 0;  // of the first layer, if the rank has it: shared with the last layer
  bool average = false;         // the optimizer keeps an average of the parameters (training.ema)
  ReplicaShape shape;
  int token_shares = 1;  // ranks that share the tokens of an activation between the tensor-parallel regions
  int64_t base_bytes = 0;
  int64_t gathered_elements =
      0;  // of one sequence: what TP gathers at a time (an activation between blocks); 0 at TP 1
};

// The peak is in a backward: microbatches in flight hold the stored activations of each layer. Of the
// microbatch whose backward runs, layers after the current one are already released, while the current one
// needs its workspace (and, when recomputing, all of its activations).
//
// Of offloaded inputs of blocks, those of the current block and two more are on the GPU: the next one of this
// backward, and the first of the next step.
//
// A split backward leaves something of every block it has passed, for the gradients of weights: of the
// microbatch whose backward runs, and of as many before it as they are delayed.
//
// Where the replicas share gradients, a rank holds its part of the sums, and whole gradients of two
// neighbouring layers: those that are summed and those that are computed (ZeRO-2; the trainer's
// gradient_places()). Where they share parameters, too, it also has the weights of two layers: those that
// compute and those that are gathered (ZeRO-3). Matrices that two layers share stay whole.
MemoryBreakdown rank_memory(const RankMemoryInput& input, const FrameworkStyle& style, Precision precision);

}  // namespace sailor
