#include "trainer/pipeline/executor.h"

#include <algorithm>
#include <utility>

namespace sailor {

// A forward or backward of a microbatch, which takes as long as on the emulated device if there is one.
class PipelineExecutor::PacedPhase {
 public:
  PacedPhase(Pacer* pacer, PhaseWork work) : pacer_(pacer), work_(work), start_(Pacer::Clock::now()) {}

  // For other ranks.
  template <class Wait>
  void waits(const Wait& wait) {
    if (pacer_ == nullptr) return wait();
    const auto asked = Pacer::Clock::now();
    wait();
    work_.waited_s += std::chrono::duration<double>(Pacer::Clock::now() - asked).count();
  }
  // Layers before or from this one are computed.
  void computed_to(int end_layer) {
    PhaseWork part = work_;
    part.end_layer = end_layer;
    if (pacer_) pacer_->part_computed(part, start_);
  }
  void computed_from(int first_layer) {
    PhaseWork part = work_;
    part.first_layer = first_layer;
    if (pacer_) pacer_->part_computed(part, start_);
  }
  void computed() {
    if (pacer_) pacer_->computed(work_, start_);
  }

 private:
  Pacer* const pacer_;
  PhaseWork work_;
  const Pacer::Clock::time_point start_;
};

PipelineExecutor::PipelineExecutor(const GroupPosition& position, const ModelSpec& model,
                                   at::ScalarType dtype, std::vector<Chunk> chunks,
                                   std::vector<ScheduleStep> steps, StageLink* previous, StageLink* next,
                                   Pacer* pacer, StepRecorder& recorder, Device& device)
    : position_(position),
      model_(model),
      dtype_(dtype),
      chunks_(std::move(chunks)),
      steps_(std::move(steps)),
      previous_(previous),
      next_(next),
      pacer_(pacer),
      recorder_(recorder),
      device_(device),
      offloaded_(device),
      flights_(chunks_.size()) {}

PipelineResult::Losses PipelineResult::mean(int64_t global_targets) const {
  Losses mean;
  if (losses.empty()) return mean;
  const at::Tensor on_host = at::stack(losses).to(at::kCPU, at::kDouble);
  const int64_t each = losses.front().numel();  // one sum, or two
  const double* sums = on_host.data_ptr<double>();
  for (int64_t i = 0; i < on_host.numel(); i += each) {
    mean.loss += sums[i] / static_cast<double>(global_targets);
    if (each > 1) mean.z_loss += sums[i + 1] / static_cast<double>(global_targets);
  }
  return mean;
}

bool PipelineExecutor::last(int chunk) const {
  return position_.group + 1 == position_.groups && chunk + 1 == static_cast<int>(chunks_.size());
}

void PipelineExecutor::warm_up(const PipelineWork& work, const LayerCall& layer_finished) {
  if (!device_.asynchronous()) return;
  for (int microbatch = 0; microbatch < work.microbatches; ++microbatch) {
    const int sequences = work.sequences(microbatch);
    if (sequences == 0 || !warmed_up_.emplace(sequences, layer_finished != nullptr).second) continue;
    for (int i = 0; i < static_cast<int>(chunks_.size()); ++i) {
      at::Tensor x;
      if (!first(i)) x = previous_->zeros({sequences, model_.sequence, model_.hidden}, dtype_);
      const Batch batch = load(work, {.chunk = i, .microbatch = microbatch});
      warm_up(chunks_[static_cast<std::size_t>(i)], batch, std::move(x), layer_finished);
    }
    if (layer_finished) offloaded_.reserve(most_offloaded(work, sequences));
  }
  device_.wait(device_.compute());
}

void PipelineExecutor::warm_up(const Chunk& chunk, const Batch& batch, at::Tensor x,
                               const LayerCall& layer_finished) {
  const LayerCall nothing = [](int) {};
  if (!layer_finished) {
    chunk.evaluate(batch, std::move(x), nothing, nothing);
    return;
  }
  Chunk::Flight flight;
  x = chunk.forward(flight, batch, std::move(x), offloaded_, nothing, nothing);
  chunk.backward(flight, at::zeros_like(x), nothing, layer_finished);
  if (chunk.splits_backward()) chunk.backward_weights(flight, layer_finished);
}

int PipelineExecutor::most_offloaded(const PipelineWork& work, int sequences) const {
  int now = 0, most = 0, all = 0;
  for (const ScheduleStep& step : steps_) {
    const int inputs = chunks_[static_cast<std::size_t>(step.chunk)].offloaded_inputs();
    if (step.kind == ScheduleStep::Kind::forward) {
      most = std::max(most, now += inputs);
      if (work.sequences(step.microbatch) == sequences) all += inputs;
    } else if (step.kind == ScheduleStep::Kind::backward) {
      now -= inputs;
    }
  }
  return std::min(most, all);
}

PipelineResult PipelineExecutor::run(const PipelineWork& work) {
  result_ = PipelineResult{};
  if (!steps_.empty()) ask_for_message(work, steps_.front());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (i + 1 < steps_.size()) {
      ask_for_message(work, steps_[i + 1]);
      fetch_inputs(steps_[i], steps_[i + 1]);
    }
    switch (steps_[i].kind) {
      case ScheduleStep::Kind::forward:
        forward(work, steps_[i]);
        break;
      case ScheduleStep::Kind::backward:
        backward(work, steps_[i]);
        break;
      case ScheduleStep::Kind::weights:
        backward_weights(work, steps_[i]);
        break;
    }
  }
  recorder_.timed(TaskKind::wait, -1, [&] {
    for (PendingSend& send : on_their_way_) send.wait();
  });
  on_their_way_.clear();
  return result_;
}

void PipelineExecutor::ask_for_message(const PipelineWork& work, const ScheduleStep& step) {
  if (step.kind == ScheduleStep::Kind::weights) return;
  const bool forward = step.kind == ScheduleStep::Kind::forward;
  if (forward ? first(step.chunk) : last(step.chunk)) return;
  StageLink& from = forward ? *previous_ : *next_;
  asked_for_.push_back(
      from.receive({work.sequences(step.microbatch), model_.sequence, model_.hidden}, dtype_));
}

void PipelineExecutor::fetch_inputs(const ScheduleStep& current, const ScheduleStep& next) {
  if (next.kind != ScheduleStep::Kind::backward) return;
  auto& flights = flights_[static_cast<std::size_t>(next.chunk)];
  const bool same = current.kind == ScheduleStep::Kind::backward && current.chunk == next.chunk;
  if (const std::size_t at = same ? 1 : 0; at < flights.size())
    chunks_[static_cast<std::size_t>(next.chunk)].fetch(flights[at]);
}

at::Tensor PipelineExecutor::take_message(int microbatch) {
  at::Tensor message;
  recorder_.timed(TaskKind::wait, microbatch, [&] { message = asked_for_.front().take(); });
  asked_for_.pop_front();
  return message;
}

void PipelineExecutor::send(StageLink& to, const at::Tensor& tensor, int sequences) {
  while (!on_their_way_.empty() && on_their_way_.front().done()) on_their_way_.pop_front();
  on_their_way_.push_back(to.send(tensor, {sequences, model_.sequence, model_.hidden}));
}

Batch PipelineExecutor::load(const PipelineWork& work, const ScheduleStep& step) const {
  Batch batch = work.load(step.microbatch, first(step.chunk) || last(step.chunk));
  if (position_.sequence_parallel) batch.split = {work.sequences(step.microbatch), model_.sequence};
  return batch;
}

void PipelineExecutor::forward(const PipelineWork& work, const ScheduleStep& step) {
  const Chunk& chunk = chunks_[static_cast<std::size_t>(step.chunk)];
  at::Tensor x;
  if (!first(step.chunk)) x = take_message(step.microbatch);
  const int sequences = work.sequences(step.microbatch);
  const Batch batch = load(work, step);

  auto& flights = flights_[static_cast<std::size_t>(step.chunk)];
  flights.emplace_back();
  recorder_.timed(TaskKind::forward, step.microbatch, [&] {
    PacedPhase paced(pacer_, phase_work(Phase::forward, chunk, sequences));
    x = chunk.forward(
        flights.back(), batch, std::move(x), offloaded_,
        [&](int layer) { paced.waits([&] { work.forward_begins(layer); }); },
        [&](int layer) {
          if (work.gathers_every_microbatch) paced.computed_to(layer + 1);
          work.forward_ends(layer);
        });
    paced.computed();
  });
  result_.max_in_flight = std::max(result_.max_in_flight, ++in_flight_);
  if (last(step.chunk)) {
    result_.losses.push_back(x);
  } else {
    send(*next_, x, sequences);
  }
}

void PipelineExecutor::backward(const PipelineWork& work, const ScheduleStep& step) {
  const Chunk& chunk = chunks_[static_cast<std::size_t>(step.chunk)];
  auto& flights = flights_[static_cast<std::size_t>(step.chunk)];
  at::Tensor gradient;
  if (last(step.chunk)) {
    const at::Tensor& losses = flights.front().outputs.back();
    gradient = at::full(losses.sizes(), work.loss_scale / static_cast<double>(work.global_targets),
                        losses.options());
  } else {
    gradient = take_message(step.microbatch);
  }
  timed_backward(work, step, Phase::backward, [&](PacedPhase& paced, const LayerCall& finished) {
    gradient = chunk.backward(
        flights.front(), std::move(gradient),
        [&](int layer) { paced.waits([&] { work.layer_begins(layer); }); }, finished);
  });
  if (chunk.splits_backward()) pending_.push_back(std::move(flights.front()));
  flights.pop_front();
  --in_flight_;
  if (!first(step.chunk)) send(*previous_, gradient, work.sequences(step.microbatch));
}

void PipelineExecutor::backward_weights(const PipelineWork& work, const ScheduleStep& step) {
  const Chunk& chunk = chunks_[static_cast<std::size_t>(step.chunk)];
  timed_backward(work, step, Phase::weights, [&](PacedPhase&, const LayerCall& finished) {
    chunk.backward_weights(pending_.front(), finished);
  });
  pending_.pop_front();
}

void PipelineExecutor::timed_backward(const PipelineWork& work, const ScheduleStep& step, Phase phase,
                                      const std::function<void(PacedPhase&, const LayerCall&)>& compute) {
  const Chunk& chunk = chunks_[static_cast<std::size_t>(step.chunk)];
  // Of a split backward the first part completes nothing.
  const bool completes = phase == Phase::weights || !chunk.splits_backward();
  const bool last_microbatch = completes && step.microbatch + 1 == work.microbatches;
  const TaskKind kind = phase == Phase::weights ? TaskKind::weights : TaskKind::backward;
  recorder_.timed(kind, step.microbatch, [&] {
    PacedPhase paced(pacer_, phase_work(phase, chunk, work.sequences(step.microbatch)));
    // The sums of an emulated device must not begin before it is that far.
    const auto finished = [&](int layer) {
      paced.computed_from(layer);
      paced.waits([&] { work.layer_finished(layer, last_microbatch); });
    };
    std::vector<int> finished_layers;  // on an emulated device, after the whole backward if there is memory
    compute(paced, [&](int layer) {
      if (pacer_ && !work.sums_every_microbatch && last_microbatch) {
        finished_layers.push_back(layer);
      } else if (pacer_ && !work.sums_every_microbatch) {
        work.layer_finished(layer, last_microbatch);
      } else {
        finished(layer);
      }
    });
    for (const int layer : finished_layers) finished(layer);
    paced.computed();
  });
}

double PipelineExecutor::evaluate(const PipelineWork& work) {
  // Whose tensors are kept while the next group is behind; a round of microbatches can be under way.
  const std::size_t most_sends = static_cast<std::size_t>(std::max(4, position_.groups));
  PipelineResult evaluated;
  for (const ScheduleStep& step : steps_) {
    if (step.kind != ScheduleStep::Kind::forward || work.sequences(step.microbatch) == 0) continue;
    at::Tensor x;
    if (!first(step.chunk)) {
      ask_for_message(work, step);
      x = take_message(step.microbatch);
    }
    const Batch batch = load(work, step);
    x = chunks_[static_cast<std::size_t>(step.chunk)].evaluate(batch, std::move(x), work.forward_begins,
                                                               work.forward_ends);
    if (last(step.chunk)) {
      evaluated.losses.push_back(x);
    } else {
      send(*next_, x, work.sequences(step.microbatch));
      for (; on_their_way_.size() > most_sends; on_their_way_.pop_front()) on_their_way_.front().wait();
    }
  }
  for (PendingSend& send : on_their_way_) send.wait();
  on_their_way_.clear();
  return evaluated.mean(1).loss;
}

void PipelineExecutor::drop() {
  asked_for_.clear();
  on_their_way_.clear();
  flights_.clear();
  pending_.clear();
  result_ = {};
}

PhaseWork PipelineExecutor::phase_work(Phase phase, const Chunk& chunk, int sequences) const {
  const int shares = position_.shape.cp * (position_.sequence_parallel ? position_.shape.tp : 1);
  return {.phase = phase,
          .pipeline = position_.pipeline,
          .stage = position_.group,
          .first_layer = chunk.first_layer(),
          .end_layer = chunk.end_layer(),
          .shape = position_.shape,
          .sequences = sequences,
          .recompute = chunk.recompute(),
          .first_block = std::max(chunk.first_layer(), 1),
          .split = chunk.splits_backward(),
          .offloaded_bytes = int64_t{sequences} * model_.sequence * model_.hidden / shares *
                             static_cast<int64_t>(c10::elementSize(dtype_))};
}

}  // namespace sailor
