#include "profiler/stack_bench.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "planner/process/seconds_since.h"
#include "profiler/copying_communicator.h"
#include "trainer/model/element_types.h"
#include "trainer/model/layer.h"
#include "trainer/model/registry.h"
#include "trainer/model/torch_device.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/square_sum.h"
#include "trainer/parallel/gradient_buffer.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostBlocks = 4;                     // enough to be out of every cache that a job is out of
constexpr int kLeastPasses = 3, kMostPasses = 20;  // with each level of recomputation, and split backwards

bool is_block(LayerKind kind) {
  return kind != LayerKind::embedding && kind != LayerKind::head;
}

// Times of tasks that a device may still be at when their calls have returned.
class Spans {
 public:
  explicit Spans(Device& device) : device_(device) {}
  // Adds the time of `task` to `total_s`, which must be there until finish().
  template <class Task>
  void time(double& total_s, const Task& task) {
    std::shared_ptr<TimeMark> from = device_.mark();
    task();
    spans_.push_back({&total_s, std::move(from), device_.mark()});
  }
  void finish() {
    for (const Span& span : spans_) *span.total_s += device_.seconds_between(*span.from, *span.to);
    spans_.clear();
  }

 private:
  struct Span {
    double* total_s;
    std::shared_ptr<TimeMark> from, to;
  };
  Device& device_;
  std::vector<Span> spans_;
};

}  // namespace

struct StackBench::State {
  struct Member {
    std::size_t kind;  // in `kinds`
    std::unique_ptr<Layer> layer;
    std::vector<std::size_t> parameters;  // in the buffer
  };
  // Seconds of the layers of one kind, added up over a pass.
  using Seconds = std::vector<double>;

  ModelSpec model;
  OptimizerSpec optimizer;
  at::ScalarType dtype = at::kFloat;
  std::unique_ptr<CopyingCommunicator> copying;
  Company company;
  std::vector<LayerKind> kinds;
  std::vector<Member> stack;
  std::unique_ptr<GradientBuffer> gradients;

  void build(const JobSpec& job, int tp) {
    check_split(job.model, tp);
    model = with_every_kind(job.model);
    kinds = layer_kinds(model);
    optimizer = job.training.optimizer;
    dtype = scalar_type(job.training.precision);
    if (tp > 1 && !company.group)
      copying = std::make_unique<CopyingCommunicator>(tp, !company.device->asynchronous());
    LayerContext context;
    context.model = model;
    context.padded_vocabulary = padded_vocabulary(job.model.vocabulary, {tp});
    context.dtype = dtype;
    context.device = place_of(*company.device);
    context.seed = job.training.seed;
    context.tp = company.group ? company.group : copying.get();
    const int blocks = std::min(kMostBlocks, model.layers);
    for (int layer = 0; layer <= model.layers + 1; ++layer) {
      if (layer > blocks && layer <= model.layers) continue;
      const auto kind = std::ranges::find(kinds, kind_of_layer(model, layer)) - kinds.begin();
      stack.push_back({static_cast<std::size_t>(kind), build_layer(context, layer), {}});
    }
    std::vector<Parameter*> order;
    for (Member& member : stack) {
      for (Parameter& parameter : member.layer->parameters()) {
        member.parameters.push_back(order.size());
        order.push_back(&parameter);
      }
    }
    gradients = std::make_unique<GradientBuffer>(order);
    gradients->begin_iteration();
  }
  // Layers of a kind in the stack: what a pass adds up is divided by it.
  double count(std::size_t kind) const {
    return static_cast<double>(std::ranges::count(stack, kind, &Member::kind));
  }
  Seconds no_seconds() const { return Seconds(kinds.size(), 0.0); }

  // Whether all members take one more sample: the first one's opinion.
  bool another(bool wanted) const {
    if (!company.all) return wanted;
    unsigned char again = wanted ? 1 : 0;
    company.all->broadcast(&again, 1, ElementType::u8, 0);
    return again == 1;
  }
  // Lets the members start together.
  void meet() const {
    if (company.all) company.all->barrier();
  }
  std::vector<int64_t> collectives() const {
    return copying ? copying->take_bytes() : std::vector<int64_t>();
  }

  // The same tokens on every member of a group.
  at::Tensor tokens(int microbatch) const {
    const at::Tensor counter = at::arange(int64_t{microbatch} * model.sequence, at::kLong);
    return (counter * 7919)
        .remainder(model.vocabulary)
        .view({microbatch, model.sequence})
        .to(place_of(*company.device));
  }

  // With `weights_s` the backwards of blocks are split, and that is for their second parts.
  void pass(const Batch& batch, Seconds& forward_s, Seconds& backward_s, ByKind& result,
            Seconds* weights_s = nullptr) {
    std::vector<at::Tensor> inputs, outputs;
    std::vector<LaterGradientsPtr> later;
    Spans spans(*company.device);
    meet();
    collectives();
    for (const Member& member : stack) {
      const std::size_t kind = member.kind;
      at::Tensor input;
      if (!outputs.empty()) input = outputs.back().detach().set_requires_grad(true);
      Batch of_layer = batch;
      if (weights_s && is_block(kinds[kind])) of_layer.later = c10::make_intrusive<LaterGradients>();
      later.push_back(of_layer.later);
      spans.time(forward_s[kind], [&] { outputs.push_back(member.layer->forward(input, of_layer)); });
      inputs.push_back(input);
      result[kind].forward_bytes = collectives();
    }
    // The loss of a microbatch is divided by its tokens, as the trainer divides by the global batch's.
    at::Tensor gradient =
        at::full({}, 1.0 / static_cast<double>(batch.inputs.numel()), outputs.back().options());
    for (size_t i = stack.size(); i-- > 0;) {
      const std::size_t kind = stack[i].kind;
      spans.time(backward_s[kind], [&] {
        outputs[i].backward(gradient);
        outputs[i].reset();
        if (!later[i]) gradients->collect(stack[i].parameters);
      });
      if (later[i])
        spans.time((*weights_s)[kind], [&] {
          later[i]->compute();
          gradients->collect(stack[i].parameters);
        });
      result[kind].backward_bytes = collectives();
      if (i > 0) gradient = inputs[i].grad();
    }
    spans.finish();
  }

  // Of each kind of block: the gradients of its weights.
  void measure_weights(const Batch& batch, double most_s, ByKind& result) {
    std::vector<Samples> samples(kinds.size());
    ByKind ignored(kinds.size());
    const auto begin = Clock::now();
    for (int i = 0; another(i < kLeastPasses || (i < kMostPasses && seconds_since(begin) < most_s)); ++i) {
      Seconds forward_s = no_seconds(), backward_s = no_seconds(), weights_s = no_seconds();
      pass(batch, forward_s, backward_s, ignored, &weights_s);
      for (size_t k = 0; k < kinds.size(); ++k) samples[k].add(weights_s[k] / count(k));
    }
    for (size_t k = 0; k < kinds.size(); ++k) result[k].times.weight_s = samples[k].usual_mean();
  }

  // Of each kind of block: what its backward computes again.
  void measure_recomputation(const Batch& batch, double most_s, ByKind& result) {
    for (const auto& [level, time_s] :
         {std::pair(Recompute::light, &LayerTimes::light_s), std::pair(Recompute::mlp, &LayerTimes::mlp_s)}) {
      Seconds again_s;
      Spans spans(*company.device);
      int depth = 0;
      for (const Member& member : stack) {
        member.layer->recompute(level);
        member.layer->around_recomputation([&, kind = member.kind](const TensorCall& compute) {
          at::Tensor tensor;
          if (depth++ > 0)
            tensor = compute();  // within another one
          else
            spans.time(again_s[kind], [&] { tensor = compute(); });
          --depth;
          return tensor;
        });
      }
      std::vector<Samples> samples(kinds.size());
      ByKind ignored(kinds.size());
      const auto begin = Clock::now();
      for (int i = 0; another(i < kLeastPasses || (i < kMostPasses && seconds_since(begin) < most_s)); ++i) {
        again_s = no_seconds();
        Seconds forward_s = no_seconds(), backward_s = no_seconds();
        pass(batch, forward_s, backward_s, ignored);
        spans.finish();
        for (size_t k = 0; k < kinds.size(); ++k) samples[k].add(again_s[k] / count(k));
      }
      for (size_t k = 0; k < kinds.size(); ++k) result[k].times.*time_s = samples[k].usual_mean();
    }
    for (const Member& member : stack) {
      member.layer->recompute(Recompute::none);
      member.layer->around_recomputation({});
    }
  }

  // All that a rank does per parameter and iteration, in the trainer's order.
  Seconds update(std::vector<std::unique_ptr<Optimizer>>& optimizers) {
    Seconds seconds = no_seconds();
    double norm = 0;
    Spans spans(*company.device);
    const auto for_each_layer = [&](const auto& function) {
      for (size_t i = 0; i < stack.size(); ++i) {
        spans.time(seconds[stack[i].kind], [&] { function(i); });
      }
    };
    for_each_layer([&](size_t i) {
      std::vector<at::Tensor> views;
      for (const std::size_t p : stack[i].parameters) views.push_back(gradients->view(p).view({-1}));
      norm += square_sum(views);
    });
    for_each_layer([&](size_t i) { optimizers[i]->step(optimizer.lr, 1); });
    for_each_layer([&](size_t i) {
      for (const std::size_t p : stack[i].parameters) at::Tensor(gradients->view(p)).zero_();
    });
    spans.finish();
    if (!std::isfinite(norm)) throw std::runtime_error("the gradient of random weights is not finite");
    return seconds;
  }
};

StackBench::StackBench(const JobSpec& job, int tp, const Company& company)
    : state_(std::make_unique<State>()) {
  state_->company = company;
  state_->build(job, tp);
}
StackBench::~StackBench() = default;

StackBench::ByKind StackBench::measure(int microbatch, const MeasuringOptions& options) {
  State& s = *state_;
  const Batch batch{s.tokens(microbatch), s.tokens(microbatch)};
  const size_t kinds = s.kinds.size();
  ByKind result(kinds);
  std::vector<Samples> forward(kinds), backward(kinds), both(kinds), update(kinds);
  Samples whole, whole_update;
  for (int i = 0; i < options.warm_up; ++i) {
    State::Seconds ignored = s.no_seconds();
    s.pass(batch, ignored, ignored, result);
  }
  for (const auto begin = Clock::now(); s.another(!enough(whole, seconds_since(begin), options));) {
    State::Seconds forward_s = s.no_seconds(), backward_s = s.no_seconds();
    s.pass(batch, forward_s, backward_s, result);
    double sum_s = 0;
    for (size_t k = 0; k < result.size(); ++k) {
      const double count = s.count(k);
      forward[k].add(forward_s[k] / count);
      backward[k].add(backward_s[k] / count);
      both[k].add((forward_s[k] + backward_s[k]) / count);
      sum_s += forward_s[k] + backward_s[k];
    }
    whole.add(sum_s);
  }
  s.measure_recomputation(batch, options.max_seconds / 8, result);
  s.measure_weights(batch, options.max_seconds / 16, result);

  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (const State::Member& member : s.stack) {
    std::vector<OptimizerSlice> slices;
    for (const std::size_t p : member.parameters) {
      const Parameter& parameter = *s.gradients->order()[p];
      slices.push_back({parameter.name, parameter.decay, 0, parameter.value.numel(),
                        parameter.value.detach().view({-1}), s.gradients->view(p).view({-1})});
    }
    optimizers.push_back(make_optimizer(s.optimizer, std::move(slices)));
  }
  s.update(optimizers);
  for (const auto begin = Clock::now(); s.another(!enough(whole_update, seconds_since(begin), options));) {
    s.meet();
    const State::Seconds seconds = s.update(optimizers);
    for (size_t k = 0; k < result.size(); ++k) update[k].add(seconds[k] / s.count(k));
    whole_update.add(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  }
  // Each part without interruptions, which are then distributed evenly, wherever they occurred in the
  // measurement.
  double usual_s = 0, usual_update_s = 0;
  for (size_t k = 0; k < result.size(); ++k) {
    const double count = s.count(k);
    usual_s += count * (forward[k].usual_mean() + backward[k].usual_mean());
    usual_update_s += count * update[k].usual_mean();
  }
  const bool paused = options.with_interruptions;
  const double slowdown = paused ? slowdown_by_interruptions(whole, usual_s) : 1;
  const double update_slowdown = paused ? slowdown_by_interruptions(whole_update, usual_update_s) : 1;
  for (size_t k = 0; k < result.size(); ++k) {
    result[k].times.forward_s = slowdown * forward[k].usual_mean();
    result[k].times.backward_s = slowdown * backward[k].usual_mean();
    result[k].times.update_s = update_slowdown * update[k].usual_mean();
    result[k].times.light_s *= slowdown;
    result[k].times.mlp_s *= slowdown;
    result[k].times.weight_s = std::min(slowdown * result[k].times.weight_s, result[k].times.backward_s);
    result[k].samples = both[k].size();
    result[k].outliers = both[k].outliers();
    result[k].relative_error = std::min(both[k].relative_error(), 10.0);
  }
  return result;
}

}  // namespace sailor
