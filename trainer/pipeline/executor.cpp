#include "trainer/pipeline/executor.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "trainer/pipeline/one_f_one_b.h"

namespace sailor {

PipelineExecutor::PipelineExecutor(const StagePosition& position, const ModelSpec& model,
                                   at::ScalarType dtype, std::vector<Layer*> layers, StageLink* previous,
                                   StageLink* next, Pacer* pacer)
    : position_(position),
      model_(model),
      dtype_(dtype),
      layers_(std::move(layers)),
      previous_(previous),
      next_(next),
      pacer_(pacer) {}

PipelineRun PipelineExecutor::run(int microbatches, int64_t global_tokens,
                                  const std::function<Batch(int)>& load) {
  run_ = PipelineRun{};
  oldest_gradient_out_ = 0;
  for (const ScheduleStep& step : one_f_one_b(position_.stage, position_.stages, microbatches)) {
    if (step.kind == ScheduleStep::Kind::forward) {
      forward(step.microbatch, global_tokens, load(step.microbatch));
    } else {
      backward(step.microbatch);
    }
  }
  timed(run_.wait_s, [&] {
    for (PendingSend& send : activations_out_) send.wait();
    for (PendingSend& send : gradients_out_) send.wait();
  });
  activations_out_.clear();
  gradients_out_.clear();
  return run_;
}

void PipelineExecutor::forward(int microbatch, int64_t global_tokens, const Batch& batch) {
  InFlight flight;
  flight.sequences = static_cast<int>(batch.inputs.size(0));
  if (previous_) {
    timed(run_.wait_s, [&] {
      flight.input = previous_->receive({flight.sequences, model_.sequence, model_.hidden}, dtype_);
      // The stage before us has P - stage forwards under way before its first backward: this activation shows
      // that it has taken our gradients up to microbatch - (P - stage) - 1.
      const int taken = microbatch - (position_.stages - position_.stage) - 1;
      for (; oldest_gradient_out_ <= taken; ++oldest_gradient_out_) {
        gradients_out_.front().wait();
        gradients_out_.pop_front();
      }
    });
    flight.input.set_requires_grad(true);
  }

  const auto start = Pacer::Clock::now();
  timed(run_.forward_s, [&] {
    at::Tensor x = flight.input;
    for (Layer* layer : layers_) x = layer->forward(x, batch);
    if (position_.last()) x = x / static_cast<double>(global_tokens);
    flight.output = x;
    paced(Phase::forward, flight.sequences, start);
  });

  if (position_.last()) {
    run_.loss += flight.output.item<double>();
  } else {
    activations_out_.push_back(next_->send(flight.output));
  }
  in_flight_.push_back(std::move(flight));
  run_.max_in_flight = std::max(run_.max_in_flight, static_cast<int>(in_flight_.size()));
}

void PipelineExecutor::backward(int) {
  InFlight& flight = in_flight_.front();
  at::Tensor gradient;  // undefined on the last stage: d loss / d loss is 1
  if (next_) {
    timed(run_.wait_s, [&] {
      gradient = next_->receive({flight.sequences, model_.sequence, model_.hidden}, dtype_);
      activations_out_.front().wait();  // the next stage has used it: its gradient is here
      activations_out_.pop_front();
    });
  }

  const auto start = Pacer::Clock::now();
  timed(run_.backward_s, [&] {
    if (gradient.defined()) {
      torch::autograd::backward({flight.output}, {gradient});
    } else {
      torch::autograd::backward({flight.output}, {});
    }
    paced(Phase::backward, flight.sequences, start);
  });

  if (previous_) gradients_out_.push_back(previous_->send(flight.input.grad()));
  in_flight_.pop_front();
}

template <class Function>
void PipelineExecutor::timed(double& total_s, Function&& function) {
  const auto start = Pacer::Clock::now();
  function();
  total_s += std::chrono::duration<double>(Pacer::Clock::now() - start).count();
}

void PipelineExecutor::paced(Phase phase, int sequences, Pacer::Clock::time_point start) {
  if (!pacer_) return;
  pacer_->computed({phase, position_.pipeline, position_.stage, position_.first_layer, position_.end_layer,
                    position_.tp, sequences},
                   start);
}

}  // namespace sailor
