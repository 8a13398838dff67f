#include "planner/simulator/native_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/profile/collectives.h"
#include "planner/simulator/cost.h"
#include "planner/simulator/gradient_sync.h"
#include "planner/simulator/mesh_replay.h"
#include "planner/simulator/mesh_sync.h"

namespace sailor::native {
namespace {

// GPUs of a node that send to other nodes at the same time, by direction.
struct Senders {
  std::map<std::string, double> forward, backward;
};

Senders count_senders(const Plan& plan) {
  Senders senders;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    const size_t groups = pipeline.stages.size() / static_cast<size_t>(plan.interleave);
    // A group of GPUs sends one message at a time, whatever its number of chunks.
    std::vector<int> down(groups, 0), up(groups, 0);
    for (size_t i = 0; i + 1 < pipeline.stages.size(); ++i) {
      const PlanStage &from = pipeline.stages[i], &to = pipeline.stages[i + 1];
      if (from.node.empty() || to.node.empty() || from.node == to.node) continue;
      const int links = std::min(from.tp, to.tp);
      down[i % groups] = std::max(down[i % groups], links);
      up[(i + 1) % groups] = std::max(up[(i + 1) % groups], links);
    }
    for (size_t g = 0; g < groups; ++g) {
      if (down[g] > 0) senders.forward[pipeline.stages[g].node] += down[g];
      if (up[g] > 0) senders.backward[pipeline.stages[g].node] += up[g];
    }
  }
  return senders;
}

double senders_of(const std::map<std::string, double>& by_node, const PlanStage& from, const PlanStage& to) {
  const auto it = by_node.find(from.node);
  return it == by_node.end() || on_one_node(from, to) ? std::min(from.tp, to.tp) : it->second;
}

bool spans_nodes(const Plan& plan) {
  const PlanStage& first = plan.pipelines[0].stages[0];
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages)
      if (&stage != &first && !on_one_node(stage, first)) return true;
  return false;
}

// What is the same for every stage of a plan.
struct Common {
  const PlanningContext& context;
  const Plan& plan;
  PipelineSchedule schedule;
  Senders senders;
  bool several_nodes = false;

  // GPU groups of a pipeline, each with schedule.chunks entries in its list of stages.
  int groups_of(const PlanPipeline& pipeline) const {
    return static_cast<int>(pipeline.stages.size()) / schedule.chunks;
  }
};

// The part of a stage that does not depend on the other pipelines.
StagePrediction predict_stage(const Common& common, int pipeline, int index) {
  const PlanningContext& context = common.context;
  const PlanPipeline& of = common.plan.pipelines[static_cast<size_t>(pipeline)];
  const PlanStage& stage = of.stages[static_cast<size_t>(index)];
  const LayerProfile& profile = profile_of(context, stage.gpu_type);
  const LayerProfile::Cell& cell = cell_of(context, stage.gpu_type, common.plan.microbatch, stage.tp);
  const std::vector<LayerSizes>& sizes = sizes_of(context, stage.tp);
  const Recompute recompute = parse_recompute(stage.recompute);

  StagePrediction out;
  out.pipeline = pipeline;
  out.stage = index;
  out.estimated = profile.is_estimated();
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    const LayerTimes& times = cell.at(static_cast<size_t>(layer));
    out.forward_s += times.forward_s;
    out.backward_s += times.backward_s;
    out.update_s += times.update_s;
    // Only blocks are computed again; an embedding keeps nothing, and the loss needs the head's result at
    // once.
    if (layer == 0 || layer + 1 == static_cast<int>(cell.size())) continue;
    if (recompute == Recompute::full) out.backward_s += times.forward_s;
    if (recompute == Recompute::selective) out.backward_s += times.attention_s;
  }
  if (common.several_nodes) {
    out.forward_s *= 1 + profile.overheads.jitter;
    out.backward_s *= 1 + profile.overheads.jitter;
  }
  if (index + 1 < static_cast<int>(of.stages.size())) {
    const PlanStage& next = of.stages[static_cast<size_t>(index) + 1];
    out.send_forward_s = message_s(context, stage, next, boundary_elements(sizes, stage.end_layer),
                                   common.plan.microbatch, senders_of(common.senders.forward, stage, next));
  }
  if (index > 0) {
    const PlanStage& previous = of.stages[static_cast<size_t>(index) - 1];
    out.send_backward_s =
        message_s(context, stage, previous, boundary_elements(sizes, stage.first_layer),
                  common.plan.microbatch, senders_of(common.senders.backward, stage, previous));
  }
  out.capacity_bytes = context.catalog.at(stage.gpu_type).memory_bytes;
  return out;
}

// Seconds of one microbatch's backward through each layer of a stage.
std::vector<double> layer_backwards(const Common& common, const PlanStage& stage, double whole_s) {
  const LayerProfile::Cell& cell = cell_of(common.context, stage.gpu_type, common.plan.microbatch, stage.tp);
  const Recompute recompute = parse_recompute(stage.recompute);
  std::vector<double> parts;
  double sum_s = 0;
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    const LayerTimes& times = cell.at(static_cast<size_t>(layer));
    const bool block = layer > 0 && layer + 1 < static_cast<int>(cell.size());
    parts.push_back(times.backward_s);
    if (block && recompute == Recompute::full) parts.back() += times.forward_s;
    if (block && recompute == Recompute::selective) parts.back() += times.attention_s;
    sum_s += parts.back();
  }
  for (double& part : parts) part = sum_s > 0 ? part * whole_s / sum_s : 0;
  return parts;
}

// Microbatches in flight of each chunk of a group of GPUs.
std::vector<int> chunks_in_flight(const PipelineSchedule& schedule, int group, int groups, int microbatches) {
  std::vector<int> held(static_cast<size_t>(schedule.chunks), 0);
  if (schedule.chunks == 1) {
    held[0] = in_flight(group, groups, microbatches);
    return held;
  }
  const int most = most_in_flight(schedule, group, groups, microbatches);
  for (int i = 0; i < most; ++i) ++held[static_cast<size_t>(scheduled_forward(schedule, groups, i).chunk)];
  return held;
}

// Fills in what a group of GPUs holds, for all of its chunks.
void predict_memory(const Common& common, int pipeline, int group, std::span<StagePrediction> stages) {
  const PlanningContext& context = common.context;
  const PlanPipeline& of = common.plan.pipelines[static_cast<size_t>(pipeline)];
  const int groups = common.groups_of(of), last = static_cast<int>(of.stages.size()) - 1;
  const std::vector<int> held = chunks_in_flight(common.schedule, group, groups, of.microbatches);
  RankMemoryInput input;
  for (int chunk = 0; chunk < common.schedule.chunks; ++chunk) {
    const int index = chunk * groups + group;
    const PlanStage& stage = of.stages[static_cast<size_t>(index)];
    const std::vector<LayerSizes>& sizes = sizes_of(context, stage.tp);
    ChunkMemoryInput part;
    part.layers = {sizes.data() + stage.first_layer,
                   static_cast<size_t>(stage.end_layer - stage.first_layer)};
    part.recompute = parse_recompute(stage.recompute);
    part.in_flight = held[static_cast<size_t>(chunk)];
    part.has_previous = index > 0;
    part.has_next = index < last;
    if (part.has_previous) part.input_elements = boundary_elements(sizes, stage.first_layer);
    input.chunks.push_back(part);
    input.tp = stage.tp;
    if (stage.tp > 1) input.gathered_elements = sizes.front().output_elements;
    input.base_bytes = profile_of(context, stage.gpu_type).overheads.base_memory_bytes;
  }
  input.microbatch = common.plan.microbatch;
  input.microbatches = of.microbatches;
  input.replicas = static_cast<int>(common.plan.pipelines.size());
  input.both_ends = groups == 1;
  input.zero1 = common.plan.zero1;
  const MemoryBreakdown memory = rank_memory(input, context.framework, context.job.training.precision);
  for (int chunk = 0; chunk < common.schedule.chunks; ++chunk) {
    StagePrediction& stage = stages[static_cast<size_t>(chunk * groups + group)];
    stage.in_flight = held[static_cast<size_t>(chunk)];
    stage.memory = memory;
  }
}

double messages_usd(const PlanningContext& context, const Plan& plan) {
  const double element = element_bytes(context.job.training.precision);
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
  return usd;
}

// Do both take the same time and memory, whatever else the plan does? Of placed ones nobody says so: who
// shares a node with whom matters.
bool alike(const PlanPipeline& a, const PlanPipeline& b) {
  const auto same = [](const PlanStage& x, const PlanStage& y) {
    return x.node.empty() && y.node.empty() && x.first_layer == y.first_layer && x.end_layer == y.end_layer &&
           x.tp == y.tp && x.gpu_type == y.gpu_type && x.zone == y.zone && x.recompute == y.recompute;
  };
  return a.microbatches == b.microbatches &&
         std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(), same);
}

// Everything of one pipeline up to its last backward. Equal pipelines are predicted once.
class Pipelines {
 public:
  Pipelines(const Common& common, bool with_events) : common_(common), with_events_(with_events) {}

  const Timeline& timeline(int pipeline, std::span<const StagePrediction> stages) {
    const PlanPipeline& of = common_.plan.pipelines[static_cast<size_t>(pipeline)];
    std::vector<StageTimes> times;
    std::pair<int, std::vector<double>> key{of.microbatches, {}};
    for (const StagePrediction& s : stages) {
      times.push_back({s.forward_s, s.backward_s, s.send_forward_s, s.send_backward_s});
      key.second.insert(key.second.end(), {s.forward_s, s.backward_s, s.send_forward_s, s.send_backward_s});
    }
    const auto it = known_.find(key);
    if (it != known_.end()) return it->second;
    return known_
        .emplace(std::move(key),
                 pipeline_timeline(common_.schedule, times, of.microbatches, {}, with_events_))
        .first->second;
  }

 private:
  const Common& common_;
  bool with_events_;
  std::map<std::pair<int, std::vector<double>>, Timeline> known_;
};

Prediction predict(const PlanningContext& context, const Plan& plan, std::vector<Timeline>* timelines) {
  const FrameworkStyle& style = context.framework;
  const Common common{context, plan, schedule_of(style, plan), count_senders(plan), spans_nodes(plan)};
  const size_t D = plan.pipelines.size();
  Prediction out;
  std::vector<size_t> base(D);  // of a pipeline's first stage in out.stages
  std::vector<std::vector<double>> ready_s(
      D);  // when a group of GPUs is done with backward, then with its sums
  std::vector<std::vector<double>> last_backward_s(
      D);  // when its last backward began, then its newest sum ended
  std::vector<std::vector<LastBackward>> last_backwards(D);  // of every stage or chunk
  Pipelines pipelines(common, timelines != nullptr);
  for (size_t j = 0; j < D; ++j) {
    base[j] = out.stages.size();
    const PlanPipeline& pipeline = plan.pipelines[j];
    if (j > 0 && alike(pipeline, plan.pipelines[j - 1])) {  // most are
      for (size_t i = 0; i < pipeline.stages.size(); ++i) {
        out.stages.push_back(out.stages[base[j - 1] + i]);
        out.stages.back().pipeline = static_cast<int>(j);
      }
      ready_s[j] = ready_s[j - 1];
      last_backward_s[j] = last_backward_s[j - 1];
      last_backwards[j] = last_backwards[j - 1];
      if (timelines != nullptr) timelines->push_back(Timeline(timelines->back()));
      continue;
    }
    const int groups = common.groups_of(pipeline), entries = static_cast<int>(pipeline.stages.size());
    for (int i = 0; i < entries; ++i) out.stages.push_back(predict_stage(common, static_cast<int>(j), i));
    const std::span<StagePrediction> stages(out.stages.data() + base[j], static_cast<size_t>(entries));
    for (int group = 0; group < groups; ++group) predict_memory(common, static_cast<int>(j), group, stages);
    const Timeline& timeline = pipelines.timeline(static_cast<int>(j), stages);
    ready_s[j] = timeline.stage_end_s;
    last_backward_s[j] = timeline.last_backward_s;
    for (size_t i = 0; i < stages.size(); ++i)
      last_backwards[j].push_back(
          {timeline.chunk_end_s.at(i), layer_backwards(common, pipeline.stages[i], stages[i].backward_s)});
    out.pipeline_s = std::max(out.pipeline_s, timeline.makespan_s);
    for (int i = 0; i < entries; ++i) {
      stages[static_cast<size_t>(i)].busy_fraction = timeline.stage_busy_s[static_cast<size_t>(i % groups)];
      const LayerProfile& profile = profile_of(context, pipeline.stages[static_cast<size_t>(i)].gpu_type);
      out.overhead_s = std::max(out.overhead_s, profile.overheads.iteration_overhead_s);
      out.uncertainty = std::max(out.uncertainty, profile.uncertainty);
    }
    if (timelines != nullptr) timelines->push_back(timeline);
  }

  const std::vector<LayerGroup> groups = layer_groups(plan);
  const bool sharded = plan.zero1 || style.zero1;
  const bool mesh = style.sums == FrameworkStyle::Sums::mesh;
  MeshSums mesh_times;
  std::vector<SyncTimes> sums(groups.size());
  if (mesh) {
    mesh_times = mesh_sums(context, plan, groups);
    // A sharded optimizer needs its own part of the sums only, and hands out weights afterwards.
    const double weights = style.weight_bytes(context.job.training.precision) /
                           style.sync_bytes_at(context.job.training.precision);
    for (size_t g = 0; g < groups.size(); ++g) {
      sums[g].reduce_s = mesh_times.alone_s[g] / (sharded ? 2 : 1);
      if (sharded) sums[g].gather_s = weights * mesh_times.alone_s[g] / 2;
    }
  } else {
    sums = sync_times(context, plan, groups);
  }
  const auto gpus_of = [&](size_t g, size_t j) {
    return static_cast<size_t>(groups[g].stage_of[j] % common.groups_of(plan.pipelines[j]));
  };
  if (mesh && D > 1) {
    const bool overlapped = style.gradient_sync == FrameworkStyle::Sync::overlapped;
    const MeshEnds ends =
        replay_mesh(plan, groups, mesh_times, last_backwards, ready_s, {overlapped, sharded});
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t j = 0; j < D; ++j) {
        out.stages[base[j] + static_cast<size_t>(groups[g].stage_of[j])].sync_s +=
            ends.of_group_s[g] + sums[g].gather_s;
        const size_t at = gpus_of(g, j);
        if (timelines != nullptr && ends.end_s[j][at] > ready_s[j][at])
          (*timelines)[j].events.push_back({TimelineEvent::Kind::sync, static_cast<int>(at), -1,
                                            ready_s[j][at], ends.end_s[j][at],
                                            groups[g].stage_of[j] / common.groups_of(plan.pipelines[j])});
      }
    ready_s = ends.end_s;
  } else if (D > 1) {
    for (size_t g = 0; g < groups.size(); ++g) {
      double start_s = 0, begin_s = 0;
      for (size_t j = 0; j < D; ++j) {
        start_s = std::max(start_s, ready_s[j][gpus_of(g, j)]);
        begin_s = std::max(begin_s, last_backward_s[j][gpus_of(g, j)]);
      }
      // From when every replica is in its last backward, what is summed meanwhile costs nothing; not all of
      // it can be.
      double end_s = start_s + sums[g].reduce_s;
      if (style.gradient_sync == FrameworkStyle::Sync::overlapped)
        end_s = std::max(start_s + sums[g].reduce_s * (1 - style.overlap), begin_s + sums[g].reduce_s);
      end_s = std::max(end_s, start_s);
      for (size_t j = 0; j < D; ++j) {
        const size_t at = gpus_of(g, j);
        if (timelines != nullptr && end_s > start_s)
          (*timelines)[j].events.push_back({TimelineEvent::Kind::sync, static_cast<int>(at), -1, start_s,
                                            end_s,
                                            groups[g].stage_of[j] / common.groups_of(plan.pipelines[j])});
        ready_s[j][at] = end_s;
        last_backward_s[j][at] = begin_s + sums[g].reduce_s;  // when the next sum can begin
        out.stages[base[j] + static_cast<size_t>(groups[g].stage_of[j])].sync_s +=
            end_s - start_s + sums[g].gather_s;
      }
    }
  }
  if (mesh && D > 1) {
    // The iteration ends for all together: two numbers of all ranks are summed before the optimizer steps.
    double last_s = 0;
    for (const auto& of_pipeline : ready_s)
      for (double ready : of_pipeline) last_s = std::max(last_s, ready);
    for (auto& of_pipeline : ready_s)
      for (double& ready : of_pipeline) ready = last_s + mesh_times.tally_s;
  }
  const double shards = sharded ? static_cast<double>(D) : 1;
  double synced_s = out.pipeline_s, end_s = 0;
  std::vector<std::vector<double>> after_s(D);  // optimizer and what follows, by group of GPUs
  for (size_t j = 0; j < D; ++j) {
    after_s[j].assign(ready_s[j].size(), 0);
    for (size_t i = 0; i < plan.pipelines[j].stages.size(); ++i)
      after_s[j][i % ready_s[j].size()] += out.stages[base[j] + i].update_s / shards;
  }
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t j = 0; j < D; ++j) after_s[j][gpus_of(g, j)] += sums[g].gather_s;
  for (size_t j = 0; j < D; ++j)
    for (size_t i = 0; i < ready_s[j].size(); ++i) {
      synced_s = std::max(synced_s, ready_s[j][i]);
      end_s = std::max(end_s, ready_s[j][i] + after_s[j][i]);
      if (timelines != nullptr && after_s[j][i] > 0)
        (*timelines)[j].events.push_back({TimelineEvent::Kind::update, static_cast<int>(i), -1, ready_s[j][i],
                                          ready_s[j][i] + after_s[j][i]});
    }
  end_s = std::max(end_s, synced_s);
  out.sync_s = synced_s - out.pipeline_s;
  out.update_s = end_s - synced_s;
  out.iteration_s = end_s + out.overhead_s;
  out.compute_usd = out.iteration_s * usd_per_s(context, plan);
  out.transfer_usd = messages_usd(context, plan) + sync_usd(context, plan, groups);
  for (StagePrediction& s : out.stages) {
    out.fits = out.fits && s.memory.total() <= s.capacity_bytes;
    s.busy_fraction = out.iteration_s > 0 ? s.busy_fraction / out.iteration_s : 0;
  }
  return out;
}

}  // namespace

PipelineSchedule schedule_of(const FrameworkStyle& style, const Plan& plan) {
  PipelineSchedule schedule;
  schedule.chunks = plan.interleave;
  switch (style.sends) {
    case FrameworkStyle::Sends::asynchronous:
      schedule.p2p = P2p::asynchronous;
      break;
    case FrameworkStyle::Sends::asynchronous_in_turn:
      schedule.p2p = P2p::asynchronous_in_turn;
      break;
    case FrameworkStyle::Sends::blocking:
      schedule.p2p = P2p::blocking;
      break;
    case FrameworkStyle::Sends::blocking_in_turn:
      schedule.p2p = P2p::blocking_in_turn;
      break;
  }
  schedule.single_group_forwards_first = style.forwards_first_single_group;
  return schedule;
}

double message_s(const PlanningContext& context, const PlanStage& from, const PlanStage& to, int64_t elements,
                 int microbatch, double senders) {
  const double bytes =
      static_cast<double>(elements) * element_bytes(context.job.training.precision) * microbatch;
  const LinkCurve& link =
      link_of(context, link_end(from, from.tp), link_end(to, to.tp), on_one_node(from, to));
  const double slowdown = profile_of(context, from.gpu_type).overheads.message_slowdown;
  return slowdown * (context.framework.partitioned_messages
                         ? scatter_gather_s(link, bytes, from.tp, to.tp, senders)
                         : link.time_s(bytes, senders));
}

Prediction simulate(const PlanningContext& context, const Plan& plan) {
  return predict(context, plan, nullptr);
}

Prediction simulate(const PlanningContext& context, const Plan& plan, std::vector<Timeline>& timelines) {
  timelines.clear();
  return predict(context, plan, &timelines);
}

}  // namespace sailor::native
