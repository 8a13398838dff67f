#include "planner/simulator/run_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "planner/plan/validate.h"
#include "planner/profile/analytic_profile.h"
#include "planner/simulator/native_model.h"
#include "planner/spec/error.h"
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

bool is_pipelined_over_nodes(const Plan& plan) {
  for (const PlanPipeline& pipeline : plan.pipelines)
    if (static_cast<int>(pipeline.stages.size()) > plan.interleave)
      for (const PlanPipeline& any : plan.pipelines)
        for (const PlanStage& stage : any.stages)
          if (stage.node != plan.pipelines[0].stages[0].node) return true;
  return false;
}

// Fills in what `profiles` lacks of the (GPU type, TP degree) pairs that the plan uses.
void estimate(const MeasuredRun& record, const Assumptions& assumptions, const FrameworkStyle& style,
              ProfileSet& profiles) {
  const auto known_platform = assumptions.platforms.find(record.platform);
  const Platform* platform =
      known_platform == assumptions.platforms.end() ? nullptr : &known_platform->second;
  std::set<std::pair<std::string, ReplicaShape>> used;
  for (const PlanPipeline& pipeline : record.plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) used.insert({stage.gpu_type, {.tp = stage.shape.tp}});
  // Of context-parallel ranks also those of their parts (split_tokens.h).
  std::set<int> microbatches;
  for (const PlanPipeline& pipeline : record.plan.pipelines)
    microbatches.insert(microbatch_of(record.plan, pipeline));
  if (has_context_parallelism(record.plan))
    for (int size = 1; size < *microbatches.rbegin(); ++size) microbatches.insert(size);
  for (const auto& [gpu_type, shape] : used) {
    const std::vector<LayerSizes> sizes = analytic_sizes(record.shape, style, record.precision, shape);
    const auto [known, is_new] = profiles.sizes.by_shape.emplace(shape, sizes);
    // Not every profile has the memory that is used only inside a layer.
    if (!is_new)
      for (size_t layer = 0; layer < std::min(sizes.size(), known->second.size()); ++layer)
        if (known->second[layer].workspace_bytes == 0)
          known->second[layer].workspace_bytes = sizes[layer].workspace_bytes;
    if (record.plan.sequence_parallel)
      profiles.sizes.by_shape.try_emplace({}, analytic_sizes(record.shape, style, record.precision, {}));
    LayerProfile& profile = profiles.layers[gpu_type];
    profile.gpu_type = gpu_type;
    if (platform != nullptr) {
      profile.overheads = platform->overheads;
      profile.overheads.base_memory_bytes = static_cast<int64_t>(platform->base_memory_bytes);
      profile.overheads = overheads_of(style, profile.overheads);
    }
    const Platform& machines = assumptions.platform(record.platform);
    HostTimes host = machines.host + host_times(style);
    if (is_pipelined_over_nodes(record.plan)) host.tp_rank_s += machines.host_pipelined_rank_s;
    const int tp = shape.tp;
    Ring ring{tp, (tp + machines.gpus_per_node - 1) / machines.gpus_per_node, 1, nullptr, nullptr};
    const LinkEnd end{gpu_type, record.plan.pipelines[0].stages[0].zone, 1};
    if (ring.nodes < tp) ring.intra = profiles.network.find(end, end, true);
    if (ring.nodes > 1) ring.inter = profiles.network.find(end, end, false);
    if ((ring.nodes < tp && ring.intra == nullptr) || (ring.nodes > 1 && ring.inter == nullptr))
      throw InputError({machines.file, 0},
                       fmt::format("no link for a TP group of {} GPUs of type \"{}\" {} nodes: add "
                                   "one to \"links\"",
                                   tp, gpu_type, ring.nodes > 1 ? "over" : "inside"));
    for (const int microbatch : microbatches)
      profile.cells.try_emplace(
          {microbatch, shape},
          analytic_times({record.shape, style,
                          kernel_model(assumptions.catalog.at(gpu_type), record.precision), host,
                          record.precision, microbatch, ring, machines.collective_start_s}));
  }
}

// A record whose parts contradict one another is no measurement of anything. What of a plan our own trainer
// cannot run yet, others can.
void check_run(const MeasuredRun& record) {
  const JobSpec job = job_of(record);
  Plan plan = record.plan;
  plan.zero = Zero::none;
  plan.interleave = 1;
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages) stage.recompute = Recompute::none;
  if (const auto violations = check_plan(plan, job); !violations.empty())
    throw InputError(record.where, "plan: " + violations[0]);
  if (!record.memory_stage) return;
  const int wanted = *record.memory_stage;
  for (const PlanPipeline& pipeline : record.plan.pipelines) {
    const int groups = static_cast<int>(pipeline.stages.size()) / record.plan.interleave;
    if (wanted >= -groups && wanted < groups) return;
  }
  throw InputError(record.where, fmt::format("measured.memory_stage: no pipeline has a stage {}", wanted));
}

}  // namespace

std::vector<MeasuredRun> load_checked_runs(const std::string& path) {
  std::vector<MeasuredRun> records = load_measured_runs(path);
  if (records.empty()) throw InputError({path, 0}, "no run in this file");
  for (const MeasuredRun& record : records) check_run(record);
  return records;
}

JobSpec job_of(const MeasuredRun& record) {
  JobSpec job;
  job.model.name = record.model;
  set_family(job.model, record.family);
  job.model.layers = record.shape.layers;
  job.model.hidden = record.shape.hidden;
  job.model.heads = record.shape.heads;
  job.model.feed_forward = record.shape.feed_forward;
  job.model.sequence = record.shape.sequence;
  job.model.vocabulary = record.shape.vocabulary;
  job.model.kv_heads = record.shape.kv_heads;
  if (record.shape.head_width * record.shape.heads != record.shape.hidden)
    job.model.head_size = record.shape.head_width;
  job.model.tied_embeddings = record.shape.tied_embeddings;
  job.model.attention_window = record.shape.other_blocks.empty()
                                   ? record.shape.attention_span
                                   : record.shape.other_blocks.front().attention_span;
  job.training.global_batch = record.plan.global_batch;
  job.training.precision = record.precision;
  return job;
}

FrameworkStyle style_of(const MeasuredRun& record, const Assumptions& assumptions) {
  FrameworkStyle style = assumptions.framework(record.framework);
  for (const auto& [key, value] : record.options) style.set(key, value, record.where);
  return style;
}

Prediction predict_run(const MeasuredRun& record, const Assumptions& assumptions,
                       const ProfileSet* measured) {
  try {
    const FrameworkStyle style = style_of(record, assumptions);
    ProfileSet profiles;
    if (measured != nullptr) profiles = *measured;
    if (profiles.network.empty() && !assumptions.platform(record.platform).links.empty())
      profiles.network = assumptions.platform(record.platform).network();
    estimate(record, assumptions, style, profiles);
    const JobSpec job = job_of(record);
    const Snapshot snapshot;
    return native::simulate({job, snapshot, assumptions.catalog, profiles, style}, record.plan);
  } catch (const InputError& error) {
    throw error.where().file.empty() ? InputError(record.where, error.what()) : error;
  } catch (const std::invalid_argument& error) {  // an impossible schedule
    throw InputError(record.where, error.what());
  }
}

int64_t predicted_peak_bytes(const MeasuredRun& record, const Prediction& prediction) {
  if (!record.memory_stage) return prediction.peak_memory_bytes();
  int64_t peak = 0;
  for (const StagePrediction& stage : prediction.stages) {
    const int groups =
        static_cast<int>(record.plan.pipelines[static_cast<size_t>(stage.pipeline)].stages.size()) /
        record.plan.interleave;
    const int wanted = *record.memory_stage < 0 ? groups + *record.memory_stage : *record.memory_stage;
    if (stage.stage % groups == wanted) peak = std::max(peak, stage.memory.total());
  }
  return peak;
}

}  // namespace sailor
