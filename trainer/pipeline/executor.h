// Runs the schedule of one GPU group with autograd: receives, computes, sends, and counts held activations.
//
// Messages overlap with computation: sends are asynchronous, with their tensors kept alive, and the receive
// for the next step is posted before the current one begins. It waits for receives but not for sends, so the
// schedule cannot deadlock, for any message size. One thread per object.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "trainer/comm/device.h"
#include "trainer/model/layer.h"
#include "trainer/parallel/schedule.h"
#include "trainer/parallel/stage_link.h"
#include "trainer/pipeline/chunk.h"
#include "trainer/pipeline/pacer.h"
#include "trainer/pipeline/step_recorder.h"

namespace sailor {

// Position of a GPU group in the plan.
struct GroupPosition {
  int pipeline = 0;
  int group = 0;
  int groups = 1;  // of the pipeline
  ReplicaShape shape;
  bool sequence_parallel = false;  // of the plan
};

struct PipelineResult {
  // Last chunk only: the sum of the cross entropies of each microbatch, and of its z-losses if there are any,
  // where they were computed.
  std::vector<at::Tensor> losses{};
  int max_in_flight = 0;  // maximum (microbatch, chunk) pairs whose activations were held at the same time

  // This pipeline's share of the mean loss, and of the mean z-loss; 0 without the last chunk. Waits for the
  // device.
  struct Losses {
    double loss = 0, z_loss = 0;
  };
  Losses mean(int64_t global_targets) const;
};

// Inputs of an iteration.
struct PipelineWork {
  int microbatches = 0;
  std::function<int(int)> sequences;     // of a microbatch
  std::function<Batch(int, bool)> load;  // a microbatch; false: no chunk here reads its tokens
  LayerCall forward_begins, forward_ends;
  // Only for training:
  int64_t global_targets = 0;                     // of the global batch that count in the loss
  double loss_scale = 1;                          // factor on the loss in the backward
  LayerCall layer_begins;                         // a layer's backward
  std::function<void(int, bool)> layer_finished;  // its end; true: of the last microbatch, and complete
  bool sums_every_microbatch = false;             // else gradients are summed after the last one alone
  bool gathers_every_microbatch = false;          // the values of parameters
};

class PipelineExecutor {
 public:
  // `chunks` in the order of the model, and the `steps` of an iteration; all but the pipeline's first have a
  // `previous` group (the last group for later chunks of the first), all but its last a `next` one.
  // References outlive the object.
  PipelineExecutor(const GroupPosition& position, const ModelSpec& model, at::ScalarType dtype,
                   std::vector<Chunk> chunks, std::vector<ScheduleStep> steps, StageLink* previous,
                   StageLink* next, Pacer* pacer, StepRecorder& recorder, Device& device);

  // Before an iteration on a device in which a microbatch of `work` has a size for the first time, and while
  // nothing is under way there: computes one of that size, without messages, and waits for it; with a
  // `layer_finished` the backward, too. All ranks of a TP group call it. At a product's first use cuBLAS
  // loads what it needs, whatever CUDA_MODULE_LOADING says, and CUDA waits for all that runs on the device: a
  // receive among it waits for ever if its sender waits for this rank. Likewise it makes the buffers of
  // offloaded inputs.
  void warm_up(const PipelineWork& work, const LayerCall& layer_finished);

  // One iteration. The loss is divided by global_targets and multiplied by loss_scale before the backward.
  // Throws CommError.
  PipelineResult run(const PipelineWork& work);

  // Forward only, without gradients. Returns the sum of the cross entropies of the targets where the last
  // chunk is, 0 elsewhere. Skips microbatches without sequences. Throws CommError.
  double evaluate(const PipelineWork& work);

  // After a call has thrown: frees the activations and messages of its iteration. Nothing can run afterwards.
  void drop();

 private:
  class PacedPhase;

  bool first(int chunk) const { return position_.group == 0 && chunk == 0; }
  bool last(int chunk) const;
  void ask_for_message(const PipelineWork& work, const ScheduleStep& step);
  at::Tensor take_message(int microbatch);
  void send(StageLink& to, const at::Tensor& tensor, int sequences);
  void warm_up(const Chunk& chunk, const Batch& batch, at::Tensor x, const LayerCall& layer_finished);
  // As many as wait at the same time when all microbatches have that many sequences; or as there are.
  int most_offloaded(const PipelineWork& work, int sequences) const;
  // For the step after the current one: what it needs first of offloaded inputs.
  void fetch_inputs(const ScheduleStep& current, const ScheduleStep& next);
  Batch load(const PipelineWork& work, const ScheduleStep& step) const;
  void forward(const PipelineWork& work, const ScheduleStep& step);
  void backward(const PipelineWork& work, const ScheduleStep& step);
  void backward_weights(const PipelineWork& work, const ScheduleStep& step);
  // Calls it with what it has to call for each layer that it is done with.
  void timed_backward(const PipelineWork& work, const ScheduleStep& step, Phase phase,
                      const std::function<void(PacedPhase&, const LayerCall&)>& compute);
  PhaseWork phase_work(Phase phase, const Chunk& chunk, int sequences) const;

  const GroupPosition position_;
  const ModelSpec model_;
  const at::ScalarType dtype_;
  const std::vector<Chunk> chunks_;
  const std::vector<ScheduleStep> steps_;
  StageLink* const previous_;
  StageLink* const next_;
  Pacer* const pacer_;
  StepRecorder& recorder_;
  Device& device_;
  std::set<std::pair<int, bool>> warmed_up_;  // sizes of microbatches; true: the backward, too

  // The iteration in progress.
  PipelineResult result_;
  OffloadedInputs offloaded_;
  std::vector<std::deque<Chunk::Flight>> flights_;  // by chunk, oldest microbatch first
  std::deque<Chunk::Flight> pending_;               // between the parts of split backwards
  int in_flight_ = 0;
  std::deque<PendingReceive> asked_for_;  // in the order of the steps
  std::deque<PendingSend> on_their_way_;
};

}  // namespace sailor
