#include "profiler/sync_bench.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "planner/process/seconds_since.h"
#include "planner/profile/profile_set.h"
#include "planner/simulator/mesh_sync.h"
#include "planner/spec/snapshot.h"
#include "profiler/link_bench.h"
#include "trainer/model/element_types.h"
#include "trainer/model/registry.h"
#include "trainer/parallel/gradient_sync.h"

namespace sailor {
namespace {

constexpr int kMostSyncBlocks = 4;  // enough to be out of every cache that a job is out of
constexpr const char* kType = "measured";

// The whole (shortened) model on every rank.
Plan replicas(const JobSpec& job, int ranks) {
  PlanStage stage;
  stage.end_layer = job.model.num_all_layers();
  stage.gpu_type = kType;
  Plan plan;
  plan.model = job.model.name;
  plan.global_batch = ranks;
  plan.microbatch = 1;
  plan.pipelines.assign(static_cast<size_t>(ranks), {1, {stage}});
  return plan;
}

std::vector<std::unique_ptr<Layer>> build_layers(const JobSpec& job) {
  LayerContext context;
  context.model = job.model;
  context.padded_vocabulary = padded_vocabulary(job.model.vocabulary, {1});
  context.dtype = scalar_type(job.training.precision);
  context.seed = job.training.seed;
  std::map<std::string, at::Tensor> shared;
  context.shared = &shared;
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i = 0; i < job.model.num_all_layers(); ++i) layers.push_back(build_layer(context, i));
  return layers;
}

// What the simulator makes of the same sum; 0 bytes per second of our own.
double expected_s(const JobSpec& job, const Plan& plan, const NetworkProfile& network,
                  const std::vector<LayerSizes>& sizes) {
  ProfileSet profiles;
  profiles.network = network;
  profiles.sizes.by_shape[{1}] = sizes;
  profiles.layers[kType].gpu_type = kType;
  const Snapshot snapshot;
  Catalog catalog;
  catalog.gpu_types[kType].name = kType;
  const PlanningContext context{job, snapshot, catalog, profiles};
  native::StageKinds kinds(context);
  const native::CompactPlan numbers = native::compact(plan, kinds);
  native::PlanClasses classes;
  std::vector<native::LayerGroup> groups;
  native::MeshSums sums;
  native::find_classes(numbers, kinds, classes);
  native::find_layer_groups(numbers, classes, groups);
  native::find_mesh_sums(numbers, classes, groups, kinds, sums);
  return std::accumulate(sums.alone_s.begin(), sums.alone_s.end(), 0.0);
}

}  // namespace

Estimate measure_sync_s_per_byte(const JobSpec& whole_job, int ranks, const NetworkProfile& network,
                                 const MeasuringOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (ranks < 2) return {};
  JobSpec job = whole_job;
  job.model.layers = std::min(kMostSyncBlocks, job.model.layers);
  const Plan plan = replicas(job, ranks);
  const RankLayout layout(plan);
  std::vector<LayerSizes> sizes(static_cast<size_t>(job.model.num_all_layers()));
  double measured_s = 0, bytes = 0;
  int count = 0;
  run_ranks(ranks, [&](Communicator& all, CommFactory& factory) {
    at::set_num_threads(1);  // a property of the thread
    const std::vector<std::unique_ptr<Layer>> layers = build_layers(job);
    std::vector<Parameter*> parameters;
    for (const auto& layer : layers)
      for (Parameter& parameter : layer->parameters()) parameters.push_back(&parameter);
    GradientSync sync(plan, layout, all.rank(), factory, nullptr, parameters, job.model.tied_embeddings);
    sync.begin_iteration();
    const auto sum_all = [&] {
      for (int layer = job.model.num_all_layers(); layer-- > 0;) sync.layer_finished(layer, true);
      sync.finish();
    };
    Samples samples;
    for (int i = 0; i < options.warm_up; ++i) sum_all();
    const auto begin = Clock::now();
    while (true) {
      unsigned char again = !enough(samples, seconds_since(begin), options) ? 1 : 0;
      all.broadcast(&again, 1, ElementType::u8, 0);
      if (again == 0) break;
      all.barrier();
      const auto start = Clock::now();
      sum_all();
      samples.add(seconds_since(start));
    }
    if (all.rank() != 0) return;
    measured_s = samples.median();
    count = samples.size();
    for (const Parameter* parameter : parameters) {
      // A tied matrix counts as a layer of its own; here it is the embedding's.
      sizes[static_cast<size_t>(parameter->layer) % sizes.size()].parameters += parameter->value.numel();
      bytes += static_cast<double>(parameter->value.numel()) *
               static_cast<double>(c10::elementSize(gradient_type(parameter->value.scalar_type())));
    }
  });
  return {std::max(0.0, measured_s - expected_s(job, plan, network, sizes)) / bytes, count};
}

}  // namespace sailor
