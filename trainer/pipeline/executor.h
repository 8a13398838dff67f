// Runs the 1F1B schedule of one stage with autograd: receives, computes, sends, and counts what it holds.
//
// Sends are asynchronous, with their tensors kept alive, and receives block: the schedule cannot deadlock,
// whatever the sizes. A send is waited for when a message from the other side proves that it has arrived, so
// that at most as many tensors are kept as microbatches are in flight between the two stages. One thread per
// object.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/model/layer.h"
#include "trainer/parallel/stage_link.h"
#include "trainer/pipeline/pacer.h"

namespace sailor {

// Where in the plan a stage is.
struct StagePosition {
  int pipeline = 0;
  int stage = 0;
  int stages = 1;
  int first_layer = 0;
  int end_layer = 0;
  int tp = 1;

  bool first() const { return stage == 0; }
  bool last() const { return stage + 1 == stages; }
};

struct PipelineRun {
  double loss = 0;        // last stage only: this pipeline's share of the mean loss
  int max_in_flight = 0;  // most microbatches whose activations were held at once, counted as they were
  double forward_s = 0;
  double backward_s = 0;
  double wait_s = 0;
};

class PipelineExecutor {
 public:
  // `previous` and `next` are nullptr at the ends of the pipeline. Everything referred to outlives the
  // object.
  PipelineExecutor(const StagePosition& position, const ModelSpec& model, at::ScalarType dtype,
                   std::vector<Layer*> layers, StageLink* previous, StageLink* next, Pacer* pacer);

  // One iteration of `microbatches` microbatches; gradients are added to what the parameters hold. `load(i)`
  // gives microbatch i. The loss is divided by `global_tokens` before the backward. Throws CommError.
  PipelineRun run(int microbatches, int64_t global_tokens, const std::function<Batch(int)>& load);

 private:
  struct InFlight {
    int sequences;
    at::Tensor input;   // undefined on the first stage
    at::Tensor output;  // the loss on the last stage
  };
  void forward(int microbatch, int64_t global_tokens, const Batch& batch);
  void backward(int microbatch);
  template <class Function>
  void timed(double& total_s, Function&& function);
  void paced(Phase phase, int sequences, Pacer::Clock::time_point start);

  const StagePosition position_;
  const ModelSpec model_;
  const at::ScalarType dtype_;
  const std::vector<Layer*> layers_;
  StageLink* const previous_;
  StageLink* const next_;
  Pacer* const pacer_;

  // The iteration in progress.
  PipelineRun run_;
  std::deque<InFlight> in_flight_;  // oldest microbatch first
  std::deque<PendingSend> activations_out_, gradients_out_;
  int oldest_gradient_out_ = 0;  // microbatch of gradients_out_.front()
};

}  // namespace sailor
