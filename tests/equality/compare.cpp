#include "tests/equality/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "planner/plan/rank_layout.h"
#include "trainer/model/element_types.h"
#include "trainer/model/initial_values.h"
#include "trainer/model/registry.h"
#include "trainer/parallel/common_order.h"
#include "trainer/parallel/gradient_buffer.h"
#include "trainer/parallel/schedule.h"

namespace sailor::equality {
namespace {

// NaN counts as infinitely wrong.
double worse(double a, double b) {
  return std::isnan(b) ? INFINITY : std::max(a, b);
}

// Largest difference between a run of elements and the same ones, from `first` on, of the whole reference;
// elements beyond it are padding and must be zero.
double run_difference(const at::Tensor& ours, const at::Tensor& whole, int64_t first) {
  const int64_t real = std::clamp<int64_t>(whole.size(0) - first, 0, ours.size(0));
  double difference = 0;
  if (real > 0) {
    difference = worse(difference,
                       (ours.narrow(0, 0, real) - whole.narrow(0, first, real)).abs().max().item<double>());
  }
  if (real < ours.size(0)) {
    difference = worse(difference, ours.narrow(0, real, ours.size(0) - real).abs().max().item<double>());
  }
  return difference;
}

// Rows [first_row, ...) of a parameter as both sides start from it: see compare.h.
void keep_off_kinks(const JobSpec& job, const std::string& name, int64_t first_row, const at::Tensor& value) {
  const std::string suffix = ".fc1.bias";
  if (job.training.precision == Precision::fp64 || job.model.activation != Activation::relu ||
      name.size() < suffix.size() || name.substr(name.size() - suffix.size()) != suffix)
    return;
  const at::Tensor odd = (at::arange(value.size(0)) + first_row).remainder(2);
  value.detach().copy_(4.0 * odd - 2.0);
}

// B starts from 0 in training, and until it has grown A has no gradient: both sides start from values
// instead. What these models' layers read can be small, and A makes it smaller: its results would leave the
// range of fp16, which no loss scale prevents. There both sides start from a larger A and a smaller B. (In
// the other types the larger gradients of B would amplify rounding from step to step.)
void start_adapters(const std::string& name, int64_t first_row, const at::Tensor& value) {
  const auto ends_with = [&](const std::string& suffix) {
    return name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
  };
  const double factor = value.scalar_type() == at::kHalf ? 16 : 1;
  if (ends_with(".lora_A")) value.detach().mul_(factor);
  if (!ends_with(".lora_B")) return;
  const int64_t columns = value.size(1);
  value.detach().copy_(normal_values(/*seed=*/1, name, first_row * columns, value.numel(), /*mean=*/0,
                                     /*deviation=*/0.05 / factor, value.scalar_type())
                           .view_as(value));
}

void start(const JobSpec& job, const std::string& name, int64_t first_row, const at::Tensor& value) {
  keep_off_kinks(job, name, first_row, value);
  start_adapters(name, first_row, value);
}

// What the schedule of a rank's group of GPUs holds at the same time.
int in_flight(const Plan& plan, const RankSlot& slot) {
  const PlanPipeline& pipeline = plan.pipelines[static_cast<std::size_t>(slot.pipeline)];
  if (plan.zero < Zero::parameters)
    return most_in_flight(plan.interleave, slot.stage, num_groups(plan, pipeline), pipeline.microbatches);
  int now = 0, most = 0;
  for (const ScheduleStep& step : own_steps(plan, slot)) {
    now += step.kind == ScheduleStep::Kind::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

double gradient_scale(const at::Tensor& gradient, const ReferenceStep& step) {
  return std::max(gradient.abs().max().item<double>(), 1e-3 * step.largest_gradient);
}

void Outcome::add(const Outcome& other) {
  loss_err = worse(loss_err, other.loss_err);
  if (worse(grad_err, other.grad_err) > grad_err) worst = other.worst;
  grad_err = worse(grad_err, other.grad_err);
  max_in_flight = std::max(max_in_flight, other.max_in_flight);
  in_flight_ok = in_flight_ok && other.in_flight_ok;
}

Comparison::Comparison(const Case& c, const Plan& plan, int rank, RankTrainer& trainer)
    : job_(c.job), trainer_(trainer) {
  const RankLayout layout(plan);
  const RankSlot& slot = layout.slots().at(static_cast<std::size_t>(rank));
  allowed_in_flight_ = in_flight(plan, slot);
  tp_rank_ = slot.tp_rank;
  for (const Parameter* parameter : trainer.parameters()) {
    first_of_[parameter->name] = parameter->sharded ? slot.tp_rank * parameter->value.numel() : 0;
    if (parameter->gathered) gathered_.insert(parameter->name);
  }
}

void Comparison::set_initial_values() {
  const bool at_start = trainer_.next_step() == 0;
  if (at_start) check_copies();
  for (Parameter* parameter : trainer_.parameters()) {
    const int64_t first_row = parameter->sharded ? tp_rank_ * parameter->value.size(0) : 0;
    if (parameter->gathered) continue;
    if (at_start || parameter->frozen) start(job_, parameter->name, first_row, parameter->value);
  }
  // Of a gathered one a rank has its slices; what starts from other values is a bias, an element a row.
  for (const OptimizerSlice& slice : trainer_.optimizer().slices()) {
    if (at_start && gathered_.contains(slice.name))
      start(job_, slice.name, first_of_.at(slice.name) + slice.first, slice.value);
  }
  if (at_start) trainer_.optimizer().values_were_loaded();
}

// What follows sets them once more.
void Comparison::check_copies() const {
  const Optimizer& optimizer = trainer_.optimizer();
  for (std::size_t i = 0; i < optimizer.slices().size(); ++i) {
    const OptimizerSlice& slice = optimizer.slices()[i];
    for (const OptimizerState& state : optimizer.state(i))
      if ((state.name == kMasterState || state.name == kAverageState) &&
          !at::equal(state.tensor, slice.value.to(state.tensor.scalar_type())))
        throw std::runtime_error("the " + state.name + " of " + slice.name + " is not its initial value");
  }
}

void Comparison::add(const StepResult& result, const ReferenceStep& expected) {
  outcome_.loss_err =
      worse(outcome_.loss_err, std::abs(result.loss - expected.loss) / std::abs(expected.loss));
  if (job_.training.z_loss > 0)
    outcome_.loss_err =
        worse(outcome_.loss_err, std::abs(result.z_loss - expected.z_loss) / std::abs(expected.z_loss));
  outcome_.max_in_flight = std::max(outcome_.max_in_flight, result.max_in_flight);
  // The schedule reaches its bound, and no more.
  outcome_.in_flight_ok = outcome_.in_flight_ok && result.max_in_flight == allowed_in_flight_;

  const Count count = [&](double error, const std::string& what) {
    if (worse(outcome_.grad_err, error) > outcome_.grad_err)
      outcome_.worst = fmt::format("{} at step {}", what, result.step);
    outcome_.grad_err = worse(outcome_.grad_err, error);
  };
  if (result.skipped != expected.skipped || result.loss_scale != expected.loss_scale)
    count(INFINITY, fmt::format("loss scale {} ({}), not {} ({}),", result.loss_scale,
                                result.skipped ? "skipped" : "updated", expected.loss_scale,
                                expected.skipped ? "skipped" : "updated"));
  if (job_.training.on_spike && result.spikes != expected.spikes)
    count(INFINITY, fmt::format("{} spikes, not {},", result.spikes, expected.spikes));
  compare_averages(expected, count);
  if (!std::isfinite(result.grad_norm)) return;
  compare_layer_norms(result, expected, count);
  count(std::abs(result.grad_norm - expected.grad_norm) / expected.grad_norm, "norm");
  for (const OptimizerSlice& slice : trainer_.optimizer().slices()) {
    const at::Tensor& whole = expected.gradients.at(slice.name);
    count(run_difference(slice.gradient.to(at::kCPU), whole.view({-1}),
                         first_of_.at(slice.name) + slice.first) /
              gradient_scale(whole, expected),
          slice.name);
  }
}

// After the step. Gradients of some parameters are rounding and nothing else: they move none far from where
// it was, which is a scale of its own.
void Comparison::compare_averages(const ReferenceStep& expected, const Count& count) const {
  if (!job_.training.ema) return;
  Optimizer& optimizer = trainer_.optimizer();
  for (std::size_t i = 0; i < optimizer.slices().size(); ++i) {
    const OptimizerSlice& slice = optimizer.slices()[i];
    const at::Tensor& whole = expected.averages.at(slice.name);
    for (const OptimizerState& state : optimizer.state(i)) {
      if (state.name != kAverageState) continue;
      count(run_difference(state.tensor.to(at::kCPU), whole.view({-1}),
                           first_of_.at(slice.name) + slice.first) /
                std::max(whole.abs().max().item<double>(), 1e-2),
            "the average of " + slice.name);
    }
  }
}

void Comparison::compare_layer_norms(const StepResult& result, const ReferenceStep& expected,
                                     const Count& count) const {
  if ((result.step + 1) % job_.metrics.gradient_statistics_every != 0) return;
  std::vector<double> squares(static_cast<std::size_t>(job_.model.num_all_layers()));
  for (const auto& [name, gradient] : expected.gradients)
    squares[static_cast<std::size_t>(std::stoi(name))] +=
        gradient.to(at::kDouble).square().sum().item<double>();
  if (result.layer_norms.size() != squares.size()) return count(INFINITY, "the number of layer norms");
  for (std::size_t layer = 0; layer < squares.size(); ++layer)
    count(std::abs(result.layer_norms[layer] - std::sqrt(squares[layer])) /
              std::max(std::sqrt(squares[layer]), 1e-3 * expected.grad_norm),
          fmt::format("norm of layer {}", layer));
}

namespace {

Outcome train(const Case& c, const Segment& segment, int rank, CommFactory& factory, const DevicePlane* on,
              const std::function<void(Comparison&, const StepResult&)>& after_step) {
  const TokenData data = c.data();
  RankTrainer trainer(c.job, segment.plan, rank, factory, data, /*pacer=*/nullptr, on);
  Comparison comparison(c, segment.plan, rank, trainer);
  comparison.set_initial_values();
  if (!segment.load_from.empty() && trainer.load(segment.load_from).path.empty())
    throw std::runtime_error("there is no checkpoint to go on from");
  while (trainer.next_step() < segment.end) after_step(comparison, trainer.step());
  if (!segment.save_to.empty()) {
    trainer.save(segment.save_to, /*keep=*/1);
    for (const SaveResult& result : trainer.saves(/*wait=*/true))
      if (!result.error.empty()) throw std::runtime_error(result.error);
  }
  return comparison.outcome();
}

}  // namespace

Outcome train_and_compare(const Case& c, const Segment& segment, const std::vector<ReferenceStep>& reference,
                          int rank, CommFactory& factory, const DevicePlane* on) {
  return train(c, segment, rank, factory, on, [&](Comparison& comparison, const StepResult& result) {
    comparison.add(result, reference[static_cast<std::size_t>(result.step)]);
  });
}

std::vector<bool> train_and_list_skipped(const Case& c, const Segment& segment, int rank,
                                         CommFactory& factory, const DevicePlane* on) {
  std::vector<bool> skipped;
  train(c, segment, rank, factory, on,
        [&](Comparison&, const StepResult& result) { skipped.push_back(result.skipped); });
  return skipped;
}

std::map<std::string, at::Tensor> initial_values_of(const JobSpec& job) {
  LayerContext context;
  context.model = job.model;
  context.padded_vocabulary = job.model.vocabulary;
  context.dtype = scalar_type(job.training.precision);
  context.seed = job.training.seed;
  context.lora = job.training.lora;
  std::map<std::string, at::Tensor> values, shared;
  context.shared = &shared;
  for (int i = 0; i < job.model.num_all_layers(); ++i) {
    const auto layer = build_layer(context, i);
    // What has 16 bits in the trainer begins with the same values in 32 in the reference.
    for (const Parameter& parameter : layer->parameters()) {
      start(job, parameter.name, 0, parameter.value);
      values[parameter.name] = parameter.value.detach().to(gradient_type(parameter.value.scalar_type()));
    }
  }
  return values;
}

}  // namespace sailor::equality
