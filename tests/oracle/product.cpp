#include "tests/oracle/product.h"

#include <algorithm>
#include <array>

namespace sailor::oracle {
namespace {

JobSpec job_of(const Problem& problem) {
  JobSpec job;
  job.file = "job.yaml";
  job.model.name = "oracle";
  job.model.family = "gpt";
  job.model.layers = problem.layers - 2;
  job.model.hidden = 64;
  job.model.heads = 8;
  job.model.feed_forward = 256;
  job.model.sequence = 128;
  job.model.vocabulary = 256;
  job.training.global_batch = problem.global_batch;
  job.training.steps = 10;
  for (const TypeOfGpu& type : problem.types)
    if (type.max_gpus >= 0) job.resources.max_gpus[type.name] = type.max_gpus;
  const bool all =
      std::all_of(problem.zones.begin(), problem.zones.end(), [](const auto& zone) { return zone.wanted; });
  for (const ZoneOfCluster& zone : problem.zones)
    if (!all && zone.wanted) job.resources.zones.push_back(zone.name);
  return job;
}

Snapshot snapshot_of(const Problem& problem) {
  Snapshot snapshot;
  snapshot.file = "snapshot.yaml";
  for (const NodeOfCluster& node : problem.nodes)
    snapshot.nodes.push_back({node.name, "", problem.zones[node.zone].name,
                              "region-" + std::to_string(problem.zones[node.zone].region + 1),
                              problem.types[node.type].name, node.gpus, node.free, ""});
  for (size_t z = 0; z < problem.zones.size(); ++z) {
    for (size_t t = 0; t < problem.types.size(); ++t)
      snapshot.usd_per_hour[problem.types[t].name][problem.zones[z].name] = problem.usd_per_hour[t][z];
    for (size_t to = 0; to < problem.zones.size(); ++to)
      snapshot.egress_usd_per_gb[problem.zones[z].name][problem.zones[to].name] =
          problem.egress_usd_per_gb[z][to];
  }
  return snapshot;
}

ProfileSet profiles_of(const Problem& problem) {
  ProfileSet set;
  for (const TypeOfGpu& type : problem.types) {
    LayerProfile profile;
    profile.gpu_type = type.name;
    profile.file = type.name + ".json";
    for (const auto& [key, layers] : type.times)
      for (const LayerTime& layer : layers)
        profile.cells[{key.first, {key.second}}].push_back(
            {layer.forward_s, layer.backward_s, layer.update_s});
    set.layers[type.name] = profile;
  }
  for (const auto& [tp, layers] : problem.sizes)
    for (const LayerSize& layer : layers) {
      LayerSizes sizes;
      sizes.parameters = layer.parameters;
      sizes.output_elements = layer.output_elements;
      sizes.activation_bytes = 4 * layer.activation_elements;
      set.sizes.by_shape[{tp}].push_back(sizes);
    }
  const auto end_of = [&](const End& end) {
    return LinkEnd{problem.types[end.type].name, problem.zones[end.zone].name, end.gpus};
  };
  for (const auto& [ends, curve] : problem.links)
    set.network.add(
        {end_of(ends.first), end_of(ends.second), NetworkProfile::Scope::any, link_curve(ends, curve)});
  return set;
}

template <typename List>
int index_of(const List& list, const std::string& name) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
  return it == list.end() ? -1 : static_cast<int>(it - list.begin());
}

}  // namespace

PlannerInputs planner_inputs(const Problem& problem) {
  PlannerInputs out{job_of(problem), snapshot_of(problem), {}, profiles_of(problem)};
  out.catalog.file = "catalog.yaml";
  for (size_t t = 0; t < problem.types.size(); ++t) {
    GpuType type;
    type.name = problem.types[t].name;
    type.memory_bytes = problem.types[t].memory_bytes;
    type.usd_per_hour = problem.usd_per_hour[t][0];
    out.catalog.gpu_types[type.name] = type;
  }
  return out;
}

LinkCurve link_curve(const std::pair<End, End>& ends, const Curve& curve) {
  // A fit is the rate of all GPUs that send together.
  return curve.points.empty() ? LinkCurve::from_fit(curve.fit, std::min(ends.first.gpus, ends.second.gpus))
                              : LinkCurve::from_points(curve.points);
}

Plan planner_plan(const Problem& problem, const GridPlan& plan) {
  Plan out;
  out.model = "oracle";
  out.global_batch = problem.global_batch;
  out.microbatch = plan.microbatch;
  const std::vector<int> shares =
      share_microbatches(num_microbatches(out.global_batch, plan.microbatch), plan.replicas());
  for (int j = 0; j < plan.replicas(); ++j) {
    PlanPipeline pipeline;
    pipeline.microbatches = shares[j];
    for (int i = 0; i < plan.stages(); ++i) {
      const Cell& cell = plan.pipelines[j][i];
      PlanStage stage;
      stage.first_layer = plan.cuts[i];
      stage.end_layer = plan.cuts[i + 1];
      stage.gpu_type = problem.types[cell.type].name;
      stage.zone = problem.zones[cell.zone].name;
      stage.shape.tp = cell.tp;
      pipeline.stages.push_back(stage);
    }
    out.pipelines.push_back(pipeline);
  }
  return out;
}

std::optional<GridPlan> grid_plan(const Problem& problem, const Plan& plan) {
  GridPlan out;
  out.microbatch = plan.microbatch;
  out.cuts.push_back(0);
  if (plan.pipelines.empty()) return std::nullopt;
  for (const PlanStage& stage : plan.pipelines[0].stages) out.cuts.push_back(stage.end_layer);
  for (const PlanPipeline& pipeline : plan.pipelines) {
    if (static_cast<int>(pipeline.stages.size()) != out.stages()) return std::nullopt;
    out.pipelines.emplace_back();
    for (int i = 0; i < out.stages(); ++i) {
      const PlanStage& stage = pipeline.stages[i];
      const Cell cell{index_of(problem.types, stage.gpu_type), index_of(problem.zones, stage.zone),
                      stage.shape.tp};
      if (cell.type < 0 || cell.zone < 0 || stage.first_layer != out.cuts[i] ||
          stage.end_layer != out.cuts[i + 1])
        return std::nullopt;
      out.pipelines.back().push_back(cell);
    }
  }
  return out;
}

}  // namespace sailor::oracle
