#include "tests/equality/compare.h"

#include <fmt/format.h>

#include <cmath>

#include "planner/plan/rank_layout.h"
#include "trainer/model/registry.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor::equality {
namespace {

// NaN counts as infinitely wrong.
double worse(double a, double b) {
  return std::isnan(b) ? INFINITY : std::max(a, b);
}

// Largest difference between this rank's rows and the same rows of the whole reference; rows beyond it are
// padding and must be zero.
double shard_difference(const at::Tensor& ours, const at::Tensor& whole, int64_t first_row) {
  const int64_t real = std::clamp<int64_t>(whole.size(0) - first_row, 0, ours.size(0));
  double difference = 0;
  if (real > 0) {
    difference = worse(
        difference, (ours.narrow(0, 0, real) - whole.narrow(0, first_row, real)).abs().max().item<double>());
  }
  if (real < ours.size(0)) {
    difference = worse(difference, ours.narrow(0, real, ours.size(0) - real).abs().max().item<double>());
  }
  return difference;
}

}  // namespace

void Outcome::add(const Outcome& other) {
  loss_err = worse(loss_err, other.loss_err);
  if (worse(grad_err, other.grad_err) > grad_err) worst = other.worst;
  grad_err = worse(grad_err, other.grad_err);
  max_in_flight = std::max(max_in_flight, other.max_in_flight);
  in_flight_ok = in_flight_ok && other.in_flight_ok;
}

Outcome train_and_compare(const Case& c, const std::vector<ReferenceStep>& reference, int rank,
                          CommFactory& factory) {
  const RankLayout layout(c.plan);
  const RankSlot& slot = layout.slots().at(static_cast<std::size_t>(rank));
  const PlanPipeline& pipeline = c.plan.pipelines[static_cast<std::size_t>(slot.pipeline)];
  const int allowed = std::min(static_cast<int>(pipeline.stages.size()) - slot.stage, pipeline.microbatches);

  const TokenData data = c.data();
  RankTrainer trainer(c.job, c.plan, rank, factory, data);
  Outcome outcome;
  for (std::size_t step = 0; step < reference.size(); ++step) {
    const ReferenceStep& expected = reference[step];
    const StepResult result = trainer.step();
    outcome.loss_err =
        worse(outcome.loss_err, std::abs(result.loss - expected.loss) / std::abs(expected.loss));
    outcome.max_in_flight = std::max(outcome.max_in_flight, result.max_in_flight);
    outcome.in_flight_ok =
        outcome.in_flight_ok && result.max_in_flight == allowed;  // 1F1B reaches its bound, and no more

    const auto count = [&](double error, const std::string& what) {
      if (worse(outcome.grad_err, error) > outcome.grad_err)
        outcome.worst = fmt::format("{} at step {}", what, step);
      outcome.grad_err = worse(outcome.grad_err, error);
    };
    count(std::abs(result.grad_norm - expected.grad_norm) / expected.grad_norm, "norm");
    for (const Parameter* parameter : trainer.parameters()) {
      const at::Tensor ours = parameter->value.grad();
      const at::Tensor& whole = expected.gradients.at(parameter->name);
      const double scale = std::max(whole.abs().max().item<double>(), 1e-3 * expected.largest_gradient);
      count(shard_difference(ours, whole, parameter->sharded ? slot.tp_rank * ours.size(0) : 0) / scale,
            parameter->name);
    }
  }
  return outcome;
}

std::map<std::string, at::Tensor> initial_values_of(const JobSpec& job) {
  LayerContext context;
  context.model = job.model;
  context.padded_vocabulary = job.model.vocabulary;
  context.dtype = scalar_type(job.training.precision);
  context.seed = job.training.seed;
  std::map<std::string, at::Tensor> values;
  for (int i = 0; i < job.model.num_all_layers(); ++i) {
    const auto layer = model_family(job.model.family).build(context, i);
    for (const Parameter& parameter : layer->parameters()) values[parameter.name] = parameter.value;
  }
  return values;
}

}  // namespace sailor::equality
