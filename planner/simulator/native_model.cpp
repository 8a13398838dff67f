#include "planner/simulator/native_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/simulator/collectives.h"
#include "planner/simulator/cost.h"
#include "planner/simulator/timeline.h"

namespace sailor::native {
namespace {

// Consecutive layers that the same stages hold, one per pipeline: they are summed together.
struct LayerGroup {
  int first_layer = 0;
  int end_layer = 0;
  std::vector<int> stage_of;  // by pipeline, index of the stage within it
  double sync_s = 0;
};

std::vector<LayerGroup> layer_groups(const Plan& plan) {
  std::set<int> cuts;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      cuts.insert(stage.first_layer);
      cuts.insert(stage.end_layer);
    }
  std::vector<LayerGroup> groups;
  std::vector<int> stage_of(plan.pipelines.size(), 0);
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    for (size_t j = 0; j < plan.pipelines.size(); ++j)
      while (plan.pipelines[j].stages.at(stage_of[j]).end_layer <= *cut) ++stage_of[j];
    groups.push_back({*cut, *std::next(cut), stage_of, 0});
  }
  return groups;
}

StagePrediction predict_stage(const PlanningContext& context, const Plan& plan, int pipeline, int index) {
  const std::vector<PlanStage>& stages = plan.pipelines[pipeline].stages;
  const PlanStage& stage = stages[index];
  const LayerProfile& profile = profile_of(context, stage.gpu_type);
  const LayerProfile::Cell& cell = cell_of(context, stage.gpu_type, plan.microbatch, stage.tp);
  const std::vector<LayerSizes>& sizes = sizes_of(context, stage.tp);
  const int P = static_cast<int>(stages.size());

  StagePrediction out;
  out.pipeline = pipeline;
  out.stage = index;
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    out.forward_s += cell.at(layer).forward_s;
    out.backward_s += cell.at(layer).backward_s;
    out.update_s += cell.at(layer).update_s;
  }
  StageMemoryInput memory;
  memory.microbatch = plan.microbatch;
  memory.in_flight = out.in_flight = in_flight(index, P, plan.pipelines[pipeline].microbatches);
  memory.has_previous = index > 0;
  memory.has_next = index + 1 < P;
  if (memory.has_next)
    out.send_forward_s = message_s(context, stage, stages[index + 1],
                                   boundary_elements(sizes, stage.end_layer), plan.microbatch);
  if (memory.has_previous) {
    memory.input_elements = boundary_elements(sizes, stage.first_layer);
    out.send_backward_s =
        message_s(context, stage, stages[index - 1], memory.input_elements, plan.microbatch);
  }
  memory.data_parallel = plan.pipelines.size() > 1;
  memory.base_bytes = profile.overheads.base_memory_bytes;
  const std::span<const LayerSizes> layers(sizes.data() + stage.first_layer,
                                           static_cast<size_t>(stage.end_layer - stage.first_layer));
  out.memory = stage_memory(layers, memory, context.job.training.precision);
  out.capacity_bytes = context.catalog.at(stage.gpu_type).memory_bytes;
  return out;
}

// One group's all-reduce: a ring over the pipelines in plan order, as slow as its slowest link. Each rank
// holds its TP shard.
double group_sync_s(const PlanningContext& context, const Plan& plan, const LayerGroup& group) {
  const int D = static_cast<int>(plan.pipelines.size());
  const auto stage = [&](int j) -> const PlanStage& { return plan.pipelines[j].stages[group.stage_of[j]]; };
  double bytes = 0;
  std::set<int> degrees;
  for (int j = 0; j < D; ++j) degrees.insert(stage(j).tp);
  for (int tp : degrees) {
    double shard = 0;
    const std::vector<LayerSizes>& sizes = sizes_of(context, tp);
    for (int layer = group.first_layer; layer < group.end_layer; ++layer)
      shard +=
          static_cast<double>(sizes.at(layer).parameters) * element_bytes(context.job.training.precision);
    bytes = std::max(bytes, shard);
  }
  double slowest = 0;
  const LinkCurve* seen = nullptr;
  for (int j = 0; j < D; ++j) {
    const PlanStage& a = stage(j);
    const PlanStage& b = stage((j + 1) % D);
    const LinkCurve& link = link_of(context, link_end(a, a.tp), link_end(b, b.tp), on_one_node(a, b));
    if (&link == seen) continue;
    seen = &link;
    slowest = std::max(slowest, ring_all_reduce_s(link, bytes, D));
  }
  return slowest;
}

double transfer_usd(const PlanningContext& context, const Plan& plan, const std::vector<LayerGroup>& groups) {
  const double element = element_bytes(context.job.training.precision);
  const int D = static_cast<int>(plan.pipelines.size());
  double usd = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (size_t i = 0; i + 1 < pipeline.stages.size(); ++i) {
      const PlanStage& from = pipeline.stages[i];
      const PlanStage& to = pipeline.stages[i + 1];
      const double gb = static_cast<double>(boundary_elements(sizes_of(context, from.tp), from.end_layer)) *
                        element * plan.microbatch * pipeline.microbatches / 1e9;
      usd += gb * (egress_usd_per_gb(context.snapshot, from.zone, to.zone) +
                   egress_usd_per_gb(context.snapshot, to.zone, from.zone));
    }
  if (D < 2) return usd;
  for (const LayerGroup& group : groups)
    for (int j = 0; j < D; ++j) {
      const PlanStage& from = plan.pipelines[j].stages[group.stage_of[j]];
      const PlanStage& to = plan.pipelines[(j + 1) % D].stages[group.stage_of[(j + 1) % D]];
      const double price = egress_usd_per_gb(context.snapshot, from.zone, to.zone);
      if (price <= 0) continue;
      double gb = 0;
      for (int layer = group.first_layer; layer < group.end_layer; ++layer)
        gb += static_cast<double>(sizes_of(context, from.tp).at(layer).parameters) * from.tp * element / 1e9;
      usd += price * gb * 2 * (D - 1) / D;
    }
  return usd;
}

}  // namespace

double message_s(const PlanningContext& context, const PlanStage& from, const PlanStage& to, int64_t elements,
                 int microbatch) {
  const double bytes =
      static_cast<double>(elements) * element_bytes(context.job.training.precision) * microbatch;
  const LinkCurve& link =
      link_of(context, link_end(from, from.tp), link_end(to, to.tp), on_one_node(from, to));
  return scatter_gather_s(link, bytes, from.tp, to.tp);
}

Prediction simulate(const PlanningContext& context, const Plan& plan) {
  const int D = static_cast<int>(plan.pipelines.size());
  Prediction out;
  std::vector<size_t> base(D);                  // of a pipeline's first stage in out.stages
  std::vector<std::vector<double>> ready_s(D);  // when a stage is done with backward, then with its sums
  std::map<std::pair<int, std::vector<double>>, Timeline> known;  // equal pipelines have equal timelines
  for (int j = 0; j < D; ++j) {
    base[j] = out.stages.size();
    const int P = static_cast<int>(plan.pipelines[j].stages.size());
    std::vector<StageTimes> times;
    std::pair<int, std::vector<double>> key{plan.pipelines[j].microbatches, {}};
    for (int i = 0; i < P; ++i) {
      const StagePrediction s = predict_stage(context, plan, j, i);
      times.push_back({s.forward_s, s.backward_s, s.send_forward_s, s.send_backward_s});
      key.second.insert(key.second.end(), {s.forward_s, s.backward_s, s.send_forward_s, s.send_backward_s});
      out.stages.push_back(s);
    }
    auto it = known.find(key);
    if (it == known.end()) it = known.emplace(key, one_f_one_b(times, plan.pipelines[j].microbatches)).first;
    ready_s[j] = it->second.stage_end_s;
    out.pipeline_s = std::max(out.pipeline_s, it->second.makespan_s);
    for (int i = 0; i < P; ++i) out.stages[base[j] + i].busy_fraction = it->second.stage_busy_s[i];
    out.overhead_s = std::max(out.overhead_s, [&] {
      double worst = 0;
      for (const PlanStage& stage : plan.pipelines[j].stages)
        worst = std::max(worst, profile_of(context, stage.gpu_type).overheads.iteration_overhead_s);
      return worst;
    }());
  }

  std::vector<LayerGroup> groups = layer_groups(plan);
  if (D > 1)
    for (LayerGroup& group : groups) {
      group.sync_s = group_sync_s(context, plan, group);
      double start = 0;
      for (int j = 0; j < D; ++j) start = std::max(start, ready_s[j][group.stage_of[j]]);
      for (int j = 0; j < D; ++j) {
        ready_s[j][group.stage_of[j]] = start + group.sync_s;
        out.stages[base[j] + group.stage_of[j]].sync_s += group.sync_s;
      }
    }
  double synced_s = out.pipeline_s, end_s = 0;
  for (int j = 0; j < D; ++j)
    for (size_t i = 0; i < ready_s[j].size(); ++i) {
      synced_s = std::max(synced_s, ready_s[j][i]);
      end_s = std::max(end_s, ready_s[j][i] + out.stages[base[j] + i].update_s);
    }
  end_s = std::max(end_s, synced_s);
  out.sync_s = synced_s - out.pipeline_s;
  out.update_s = end_s - synced_s;
  out.iteration_s = end_s + out.overhead_s;
  out.compute_usd = out.iteration_s * usd_per_s(context, plan);
  out.transfer_usd = transfer_usd(context, plan, groups);
  for (StagePrediction& s : out.stages) {
    out.fits = out.fits && s.memory.total() <= s.capacity_bytes;
    s.busy_fraction = out.iteration_s > 0 ? s.busy_fraction / out.iteration_s : 0;
  }
  return out;
}

}  // namespace sailor::native
