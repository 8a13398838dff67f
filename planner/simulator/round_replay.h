// An iteration of our trainer in which replicas exchange gradients or weights in every microbatch (ZeRO-2 and
// ZeRO-3): when each stage of each pipeline computes, and how long it waits for the others. Pure.
//
// It follows the trainer step by step. All ranks go through the rounds in one order, in which a pipeline with
// fewer microbatches has its own in some of them (trainer/parallel/common_order.h). Weights are gathered one
// layer ahead, into two areas that layers use in turn (parameter_gathers.h). A layer's gradients are reduced
// while the backward of the next one runs (gradient_sync.h). The exchanges of a rank run one after the other,
// beside its computation; each begins when all ranks that hold the layer have come to it.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/simulator/microbatch_rounds.h"
#include "planner/simulator/timeline.h"

namespace sailor::native {

struct RoundStage {  // or chunk
  int first_layer = 0;
  std::vector<LayerRound> rounds;  // by layer; what takes no time is not exchanged
  std::vector<LayerWork> layers;
  // As in StageTimes: what is not of a layer comes before all of them.
  double forward_s = 0, backward_s = 0;
  double send_forward_s = 0, send_backward_s = 0, ready_s = 0;
};

struct RoundPipeline {
  int group = 0;  // of pipelines that share states, and exchange
  int microbatches = 1;
  std::vector<RoundStage> stages;  // with chunks in the order of the model
};

struct RoundReplay {
  struct Passes {  // of a microbatch through a stage
    double forward_s = 0, backward_s = 0;
  };
  struct Pipeline {
    Timeline timeline;                 // a stage is busy while it waits for exchanges, too
    std::vector<Passes> waits;         // by stage: for exchanges, in the mean of its microbatches
    std::vector<double> rounds_end_s;  // by GPU group: the last exchange is over
  };
  std::vector<Pipeline> pipelines;
  int64_t steps = 0;  // layers that were replayed
};

// One pipeline of each kind. `chunks`: stages of each GPU group; with several, pipelines that exchange are
// cut alike. What comes to a network card is sent in order. Of many microbatches it replays some, and
// continues at their rate; `with_events` all. Requires at least one microbatch of each pipeline.
RoundReplay replay_rounds(const std::vector<RoundPipeline>& pipelines, const RoundCards& cards, int chunks,
                          bool with_events);

// A lower bound on what the GPU groups of a pipeline exchange in a round, one after the other.
double least_exchange_s(const RoundPipeline& pipeline, int chunks);

}  // namespace sailor::native
