#include "planner/simulator/published_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/simulator/cost.h"
#include "planner/simulator/lookup.h"
#include "planner/spec/error.h"

namespace sailor::published {
namespace {

constexpr double kBytesPerParameter = 24;  // Adam, fp32, as the published formula counts
constexpr double kBucketBytes = 5e8;
constexpr int64_t kBaseBytes = 2'000'000'000;
constexpr int64_t kBaseBytesWithTp = 3'000'000'000;

void check_alike(const Plan& plan) {
  const auto& first = plan.pipelines.at(0).stages;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    bool same = pipeline.stages.size() == first.size();
    for (size_t i = 0; same && i < first.size(); ++i)
      same = pipeline.stages[i].first_layer == first[i].first_layer &&
             pipeline.stages[i].end_layer == first[i].end_layer;
    if (!same)
      throw InputError(
          "pipelines cut the layers differently: the published cost model cannot score such a plan, use "
          "--cost-model native");
  }
  if (has_unlike_microbatches(plan))
    throw InputError(
        "pipelines have microbatches of different sizes: the published cost model cannot score such a plan, "
        "use --cost-model native");
}

// One replica of a stage: compute and message times of one microbatch.
StagePrediction predict_replica(const PlanningContext& context, const Plan& plan, int pipeline, int index) {
  const PlanStage& stage = plan.pipelines[pipeline].stages[index];
  const int P = static_cast<int>(plan.pipelines[pipeline].stages.size());
  const LayerProfile::Cell& cell = cell_of(context, stage.gpu_type, plan.microbatch, stage.shape);
  const std::vector<LayerSizes>& sizes = sizes_of(context, stage.shape);
  StagePrediction out;
  out.pipeline = pipeline;
  out.stage = index;
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    out.forward_s += cell.at(layer).forward_s;
    out.backward_s += cell.at(layer).backward_s;
  }
  out.update_s = cell.at(stage.first_layer).update_s;
  out.in_flight = P - index;
  const std::span<const LayerSizes> layers(sizes.data() + stage.first_layer,
                                           static_cast<size_t>(stage.end_layer - stage.first_layer));
  out.memory = memory(layers, stage.shape, plan.microbatch, out.in_flight);
  out.capacity_bytes = context.catalog.at(stage.gpu_type).memory_bytes;
  if (index + 1 < P) {
    const PlanStage& next = plan.pipelines[pipeline].stages[index + 1];
    const double bytes =
        static_cast<double>(sizes.at(stage.end_layer - 1).output_elements) * kFloatBytes * plan.microbatch;
    out.send_forward_s =
        link_of(context, link_end(stage, stage.shape.gpus()), link_end(next, next.shape.gpus()), false)
            .published_time_s(bytes);
  }
  if (index > 0) {
    const PlanStage& previous = plan.pipelines[pipeline].stages[index - 1];
    const double bytes =
        static_cast<double>(sizes.at(stage.first_layer).output_elements) * kFloatBytes * plan.microbatch;
    out.send_backward_s = link_of(context, link_end(stage, stage.shape.gpus()),
                                  link_end(previous, previous.shape.gpus()), false)
                              .published_time_s(bytes);
  }
  return out;
}

double parameter_bytes(const PlanningContext& context, const PlanStage& stage) {
  const std::vector<LayerSizes>& sizes = sizes_of(context, {});
  double bytes = 0;
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer)
    bytes += static_cast<double>(sizes.at(layer).parameters) * kFloatBytes;
  return bytes;
}

// Gradient sync of stage i: the slowest neighbouring pair in plan order, without the wrap.
double stage_sync_s(const PlanningContext& context, const Plan& plan, int i) {
  const int D = static_cast<int>(plan.pipelines.size());
  if (D == 1) return 0;
  ReplicaShape smallest = plan.pipelines[0].stages[i].shape;
  for (const PlanPipeline& pipeline : plan.pipelines) smallest = std::min(smallest, pipeline.stages[i].shape);
  const double bytes = sync_bytes(parameter_bytes(context, plan.pipelines[0].stages[i]), smallest.parts());
  double slowest = 0;
  const LinkCurve* seen = nullptr;
  for (int j = 0; j + 1 < D; ++j) {
    const LinkCurve& pair = link_of(context, link_end(plan.pipelines[j].stages[i], 1),
                                    link_end(plan.pipelines[j + 1].stages[i], 1), false);
    if (&pair == seen) continue;
    seen = &pair;
    slowest = std::max(slowest, all_reduce_s(pair, bytes, D));
  }
  return slowest;
}

double traffic(const PlanningContext& context, const Plan& plan, double microbatches, Expense expense) {
  const int D = static_cast<int>(plan.pipelines.size());
  const int P = static_cast<int>(plan.pipelines[0].stages.size());
  double messages = 0, sync = 0;
  for (int i = 0; i < P; ++i) {
    const double stage_bytes = parameter_bytes(context, plan.pipelines[0].stages[i]);
    for (int j = 0; j < D; ++j) {
      const PlanStage& stage = plan.pipelines[j].stages[i];
      if (i + 1 < P) {
        const double bytes =
            static_cast<double>(sizes_of(context, stage.shape).at(stage.end_layer - 1).output_elements) *
            kFloatBytes * plan.microbatch;
        messages +=
            2 * traffic_per_gb(context, expense, stage.zone, plan.pipelines[j].stages[i + 1].zone) * bytes;
      }
      if (D > 1)
        sync += traffic_per_gb(context, expense, stage.zone, plan.pipelines[(j + 1) % D].stages[i].zone) *
                stage_bytes / D * 2 * (D - 1);
    }
  }
  return 1e-9 * (microbatches * messages + sync);
}

}  // namespace

MemoryBreakdown memory(std::span<const LayerSizes> layers, ReplicaShape shape, int microbatch,
                       int in_flight) {
  int64_t parameters = 0, activations = 0, frozen = 0;
  for (const LayerSizes& layer : layers) {
    parameters += layer.parameters;
    frozen += layer.frozen_parameters;
    activations += layer.activation_bytes;
  }
  MemoryBreakdown out;
  out.weights_bytes = parameters * 4;
  out.gradients_bytes = parameters * 4;
  out.optimizer_bytes = parameters * 8;
  out.communication_bytes = parameters * static_cast<int64_t>(kBytesPerParameter) - out.weights_bytes -
                            out.gradients_bytes - out.optimizer_bytes;
  out.frozen_bytes = frozen * 4;
  out.weights_bytes += out.frozen_bytes;
  out.activations_bytes = activations * microbatch * in_flight;
  out.base_bytes = shape.tp == 1 ? kBaseBytes : kBaseBytesWithTp;
  return out;
}

double all_reduce_s(const LinkCurve& pair, double bytes, int replicas) {
  if (replicas < 2 || bytes <= 0) return 0;
  const double full = std::floor(bytes / kBucketBytes);
  const double rest = bytes - full * kBucketBytes;
  double s = full > 0 ? full * pair.published_time_s(kBucketBytes / replicas) : 0;
  if (rest > 0) s += pair.published_time_s(rest / replicas);
  return 2.0 * (replicas - 1) * s;
}

double sync_bytes(double stage_bytes, int parts) {
  return stage_bytes / std::min(4, parts);
}

double stage_comm_s(int stage, int stages, double activation_s, double gradient_s) {
  if (stages == 1) return 0;
  if (stage == 0) return stages <= 3 ? activation_s : 2 * activation_s;
  if (stage == stages - 1) return 2 * gradient_s;
  return activation_s + gradient_s;
}

Prediction simulate(const PlanningContext& context, const Plan& plan) {
  check_alike(plan);
  const int D = static_cast<int>(plan.pipelines.size());
  const int P = static_cast<int>(plan.pipelines[0].stages.size());
  const double nmb = static_cast<double>((num_microbatches(plan.global_batch, plan.microbatch) + D - 1) / D);

  Prediction out;
  for (int j = 0; j < D; ++j)
    for (int i = 0; i < P; ++i) out.stages.push_back(predict_replica(context, plan, j, i));

  double bottleneck = 0, sum = 0, update = 0, sync = 0;
  for (int i = 0; i < P; ++i) {
    double comp = 0, activation = 0, gradient = 0;
    const double stage_sync = stage_sync_s(context, plan, i);
    for (int j = 0; j < D; ++j) {
      StagePrediction& replica = out.stages[static_cast<size_t>(j) * P + i];
      comp = std::max(comp, replica.forward_s + replica.backward_s);
      activation = std::max(activation, replica.send_forward_s);
      gradient = std::max(gradient, replica.send_backward_s);
      update = std::max(update, replica.update_s);
      replica.sync_s = stage_sync;
    }
    const double comm = stage_comm_s(i, P, activation, gradient);
    bottleneck = std::max(bottleneck, comp + comm);
    sum += comp + comm;
    sync = std::max(sync, stage_sync);
  }
  out.pipeline_s = (nmb - 1) * bottleneck + sum;
  out.update_s = update;
  out.sync_s = sync;
  out.iteration_s = out.pipeline_s + out.update_s + out.sync_s;
  for (StagePrediction& replica : out.stages) {
    out.fits = out.fits && replica.memory.total() <= replica.capacity_bytes;
    const double busy_s = nmb * (replica.forward_s + replica.backward_s);
    replica.busy_fraction = busy_s / out.iteration_s;
    const PlanStage& stage = plan.pipelines[replica.pipeline].stages[replica.stage];
    for (const Expense expense : kExpenses)
      if (const auto rate = gpu_rate(context, expense, stage.gpu_type, stage.zone))
        out.spent[expense].gpus += stage.shape.gpus() * rate->spent(out.iteration_s, busy_s);
  }
  for (const Expense expense : kExpenses) out.spent[expense].traffic = traffic(context, plan, nmb, expense);
  return out;
}

}  // namespace sailor::published
