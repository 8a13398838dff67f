#include "planner/simulator/iteration_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/simulator/gather_replay.h"
#include "planner/simulator/style_schedule.h"

namespace sailor::native {
namespace {

bool is_sharded(const CompactPlan& plan, const StageKinds& kinds) {
  return shards_optimizer(zero_of(plan, kinds));
}

// Do two pipelines need the same memory? Most are like the one before.
bool same_memory(const CompactPlan& plan, int a, int b) {
  const auto same = [](const CompactStage& x, const CompactStage& y) {
    return x.kind == y.kind && x.first_layer == y.first_layer && x.end_layer == y.end_layer &&
           x.recompute == y.recompute && x.weight_delay == y.weight_delay && x.offload == y.offload;
  };
  const auto of_a = plan.of(a), of_b = plan.of(b);
  return plan.microbatches[static_cast<size_t>(a)] == plan.microbatches[static_cast<size_t>(b)] &&
         plan.microbatch[static_cast<size_t>(a)] == plan.microbatch[static_cast<size_t>(b)] &&
         std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), same);
}

}  // namespace

int IterationModel::sharers_of(const CompactPlan& plan, int pipeline, int group) const {
  if (!plan.splits_context) return sharers(plan, kinds_, 0, 0);
  const auto stages = plan.of(pipeline);
  int fewest = std::numeric_limits<int>::max();
  for (size_t i = static_cast<size_t>(group); i < stages.size(); i += plan.groups(pipeline))
    fewest = std::min(fewest, sharers(plan, kinds_, stages[i].first_layer, stages[i].end_layer));
  return fewest;
}

MemoryBreakdown IterationModel::memory(std::span<const CompactStage> stages, int group,
                                       const PipelineMemoryInput& of) const {
  const PlanningContext& context = kinds_.context();
  const PipelineSchedule schedule = schedule_of(context.framework, of.interleave, 0);
  const int last = static_cast<int>(stages.size()) - 1, groups = (last + 1) / of.interleave;
  const std::vector<int> held = chunks_in_flight(schedule, group, groups, of.microbatches);
  RankMemoryInput input;
  input.average = context.job.training.ema.has_value();
  for (int chunk = 0; chunk < of.interleave; ++chunk) {
    const int index = chunk * groups + group;
    const CompactStage& stage = stages[static_cast<size_t>(index)];
    const StageKind& kind = kinds_[stage.kind];
    const std::vector<LayerSizes>& sizes = *kind.sizes;
    ChunkMemoryInput part;
    part.layers = {sizes.data() + stage.first_layer,
                   static_cast<size_t>(stage.end_layer - stage.first_layer)};
    part.recompute = stage.recompute;
    part.in_flight = held[static_cast<size_t>(chunk)];
    part.weight_delay = stage.weight_delay;
    part.alike = {kind.alike.data() + stage.first_layer, part.layers.size()};
    part.has_previous = index > 0;
    part.has_next = index < last;
    if (part.has_previous)
      part.input_elements = sizes[static_cast<size_t>(stage.first_layer) - 1].output_elements;
    else
      input.tied_parameters = sizes.back().tied_parameters;
    input.chunks.push_back(part);
    input.shape = kind.shape;
    input.token_shares = kind.token_shares();
    if (kind.shape.tp > 1) input.gathered_elements = sizes.front().output_elements / kind.shape.cp;
    input.base_bytes = kind.profile->overheads.base_memory_bytes;
    input.offload = stage.offload;
  }
  input.microbatch = of.microbatch;
  input.microbatches = of.microbatches;
  input.replicas = of.replicas;
  input.both_ends = groups == 1;
  input.zero = of.zero;
  return rank_memory(input, context.framework, context.precision);
}

int64_t IterationModel::missing_bytes(std::span<const CompactStage> stages, int group,
                                      const PipelineMemoryInput& of) {
  ++steps_;
  uint64_t key = 0x9e3779b97f4a7c15;
  const auto add = [&](int64_t value) {
    key = (key ^ static_cast<uint64_t>(value)) * 0xbf58476d1ce4e5b9;
    key ^= key >> 29;
  };
  const int groups = static_cast<int>(stages.size()) / of.interleave;
  for (const int value : {groups, group, of.microbatch, of.interleave, of.microbatches, of.replicas,
                          static_cast<int>(of.zero), of.ignores_host ? 1 : 0})
    add(value);
  for (size_t i = static_cast<size_t>(group); i < stages.size(); i += static_cast<size_t>(groups)) {
    const CompactStage& stage = stages[i];
    add(int64_t{stage.kind} << 40 | int64_t{stage.first_layer} << 20 | stage.end_layer);
    add(int64_t{static_cast<int>(stage.offload)} << 44 |
        int64_t{static_cast<int>(stage.recompute.level())} << 40 |
        int64_t{static_cast<int>(stage.recompute.deep())} << 36 | stage.recompute.deep_blocks());
  }
  const auto [known, is_new] = missing_of_group_.at(key);
  if (!is_new) return known;
  steps_ += 100;
  return known = kinds_.missing_bytes(stages[static_cast<size_t>(group)].kind, memory(stages, group, of),
                                      of.ignores_host);
}

int64_t IterationModel::missing_bytes(const StageMemoryInput& stage) {
  ++steps_;
  const Zero zero = stage.replicas > 1 ? std::max(stage.zero, kinds_.context().framework.zero) : Zero::none;
  const int sharing = shards_optimizer(zero) ? stage.replicas : std::min(stage.replicas, 2) - 1;
  const StageRecompute& recompute = stage.recompute;
  const auto levels =
      static_cast<uint64_t>(recompute.level()) + kRecomputeLevels * static_cast<uint64_t>(recompute.deep());
  constexpr int kLevelBits = 5;
  const uint64_t parts[][2] = {
      {static_cast<uint64_t>(stage.first_layer), 8}, {static_cast<uint64_t>(stage.end_layer), 8},
      {levels % (1u << kLevelBits), kLevelBits},     {static_cast<uint64_t>(recompute.deep_blocks()), 8},
      {static_cast<uint64_t>(stage.in_flight), 7},   {static_cast<uint64_t>(stage.microbatch), 7},
      {stage.several_microbatches ? 1u : 0u, 1},     {static_cast<uint64_t>(zero), 2},
      {static_cast<uint64_t>(sharing), 10},          {stage.nothing_again ? 1u : 0u, 1}};
  uint64_t key = static_cast<uint64_t>(stage.kind);
  bool in_range = stage.kind < 1 << 7;
  for (const auto& [value, bits] : parts) {
    in_range = in_range && value < uint64_t{1} << bits;
    key = key << bits | value;
  }
  // No bits are left for these. The keys of two stages may differ by as little, so that they are mixed first.
  const uint64_t rest = 8 * static_cast<uint64_t>(stage.weight_delay + 1) + 4 * (levels >> kLevelBits) +
                        2 * (stage.offload != Offload::none ? 1 : 0) + (stage.ignores_host ? 1 : 0);
  if (rest > 0) {
    steps_ += 10;
    key = (key ^ key >> 31) * 0xbf58476d1ce4e5b9;
    key = ((key ^ key >> 29) + rest) * 0x94d049bb133111eb;
    key ^= key >> 31;
  }
  if (in_range) {
    const auto [known, is_new] = missing_of_stage_.at(key);
    if (!is_new) return known;
    return known = missing_of_rank(stage);
  }
  return missing_of_rank(stage);
}

int64_t IterationModel::missing_of_rank(const StageMemoryInput& stage) {
  steps_ += 20;
  const PlanningContext& context = kinds_.context();
  const StageKind& kind = kinds_[stage.kind];
  const std::vector<LayerSizes>& sizes = *kind.sizes;
  const bool first = stage.first_layer == 0, last = stage.end_layer == static_cast<int>(sizes.size());
  RankMemoryInput input;
  input.average = context.job.training.ema.has_value();
  input.chunks = std::move(chunks_);
  input.chunks.assign(
      1, {.layers = {sizes.data() + stage.first_layer, sizes.data() + stage.end_layer},
          .recompute = stage.recompute,
          .in_flight = stage.in_flight,
          .has_previous = !first,
          .has_next = !last,
          .input_elements = first ? 0 : sizes[static_cast<size_t>(stage.first_layer) - 1].output_elements,
          .weight_delay = stage.weight_delay,
          .nothing_again = stage.nothing_again,
          .alike = {kind.alike.data() + stage.first_layer, kind.alike.data() + stage.end_layer}});
  input.microbatch = stage.microbatch;
  input.microbatches = std::max(stage.several_microbatches ? 2 : 1, stage.weight_delay + 1);
  input.replicas = stage.replicas;
  input.both_ends = first && last;
  input.zero = stage.zero;
  input.offload = stage.offload;
  if (first) input.tied_parameters = sizes.back().tied_parameters;
  input.shape = kind.shape;
  input.token_shares = kind.token_shares();
  input.base_bytes = kind.profile->overheads.base_memory_bytes;
  if (kind.shape.tp > 1) input.gathered_elements = sizes.front().output_elements / kind.shape.cp;
  const MemoryBreakdown memory = rank_memory(input, context.framework, context.precision);
  chunks_ = std::move(input.chunks);
  return kinds_.missing_bytes(stage.kind, memory, stage.ignores_host);
}

bool IterationModel::fits(const CompactPlan& plan, const PlanClasses& classes) {
  const auto like_previous = [&](int j) {
    const auto at = static_cast<size_t>(j);
    return classes.of_pipeline[at] == classes.of_pipeline[at - 1] || same_memory(plan, j - 1, j);
  };
  for (int j = 0; j < plan.pipelines(); ++j) {
    const auto stages = plan.of(j);
    const int groups = static_cast<int>(plan.groups(j));
    const int microbatches = plan.microbatches[static_cast<size_t>(j)];
    const int microbatch = plan.microbatch[static_cast<size_t>(j)];
    if (j > 0 && like_previous(j)) continue;
    for (int g = 0; g < groups; ++g) {
      const CompactStage& stage = stages[static_cast<size_t>(g)];
      if (plan.interleave > 1) {
        if (missing_bytes(stages, g,
                          {microbatch, plan.interleave, microbatches, sharers_of(plan, j, g), plan.zero}) > 0)
          return false;
        continue;
      }
      if (!fits({stage.kind, stage.first_layer, stage.end_layer, stage.recompute,
                 in_flight(g, groups, microbatches), microbatch, microbatches > 1, sharers_of(plan, j, g),
                 plan.zero, false, std::min(stage.weight_delay, microbatches - 1), stage.offload}))
        return false;
    }
  }
  return true;
}

double IterationModel::missing_memory(const CompactPlan& plan) {
  double missing = 0;
  for (int j = 0; j < plan.pipelines(); ++j) {
    if (j > 0 && same_memory(plan, j - 1, j)) continue;
    steps_ += 100 * static_cast<int64_t>(plan.groups(j));
    for (size_t g = 0; g < plan.groups(j); ++g) {
      const int kind = plan.of(j)[g].kind;
      const int64_t bytes = kinds_.missing_bytes(kind, memory(plan, j, static_cast<int>(g)));
      missing += std::max(0.0, static_cast<double>(bytes) / static_cast<double>(kinds_[kind].capacity_bytes));
    }
  }
  return missing;
}

void IterationModel::set_times(const CompactPlan& plan, IterationDetails& details, Iteration& out) const {
  const std::vector<PipelineClass>& classes = details.classes.pipelines;
  const FrameworkStyle& style = kinds_.context().framework;
  details.times.resize(classes.size());
  details.layer_times.resize(classes.size());
  for (size_t c = 0; c < classes.size(); ++c) {
    const PipelineClass& of = classes[c];
    const auto stages = plan.of(of.pipeline);
    const int microbatch = plan.microbatch[static_cast<size_t>(of.pipeline)];
    std::vector<StageTimes>& times = details.times[c];
    times.clear();
    details.layer_times[c].clear();
    for (size_t i = 0; i < stages.size(); ++i) {
      const CompactStage& stage = stages[i];
      const KindTimes& of_kind = kinds_.times(stage.kind, microbatch);
      const PlatformOverheads& overheads = kinds_[stage.kind].profile->overheads;
      const double jitter = details.classes.several_nodes ? 1 + overheads.jitter : 1;
      const auto gathers_s = [&](int gathers, int layer) {
        return gathers > 0 && !plan.sequence_parallel
                   ? gathers * kinds_.message_gather_s(stage.kind, layer, microbatch)
                   : 0;
      };
      const double received_s = i > 0 ? gathers_s(style.forward_gathers, stage.first_layer) : 0;
      const double returned_s =
          i + 1 < stages.size() ? gathers_s(style.backward_gathers, stage.end_layer) : 0;
      const double backward_s =
          returned_s + jitter * of_kind.backward(stage.recompute, stage.first_layer, stage.end_layer);
      times.push_back({received_s + jitter * of_kind.forward(stage.first_layer, stage.end_layer), backward_s,
                       of.send_forward_s[i], of.send_backward_s[i],
                       std::min(backward_s, jitter * of_kind.weights(stage.first_layer, stage.end_layer)),
                       stage.weight_delay});
      details.layer_times[c].push_back({&of_kind, jitter});
      const double nodes_s = details.classes.several_nodes ? overheads.node_sync_s : 0;
      out.overhead_s = std::max(out.overhead_s, overheads.iteration_overhead_s + nodes_s);
    }
  }
}

void IterationModel::find_sums(const CompactPlan& plan, const IterationDetails& details) {
  const FrameworkStyle& style = kinds_.context().framework;
  if (style.sums == FrameworkStyle::Sums::rings) {
    ring_times_ = sync_times(plan, details.classes, details.groups, kinds_);
    return;
  }
  find_mesh_sums(plan, details.classes, details.groups, kinds_, sums_);
  steps_ += static_cast<int64_t>(sums_.buckets.size() + sums_.members.size());
  // A sharded optimizer needs its own part of the sums only.
  for (double& processor_s : sums_.processor_s) processor_s /= is_sharded(plan, kinds_) ? 2 : 1;
}

void IterationModel::play_pipelines(const CompactPlan& plan, bool with_events, IterationDetails& details,
                                    Iteration& out) {
  const PipelineSchedule schedule =
      schedule_of(kinds_.context().framework, plan.interleave, details.classes.message_bytes);
  out.pipeline_s = 0;
  details.timelines.clear();
  details.backward_done_s.clear();
  if (!details.rounds.empty()) play_rounds(plan, with_events, details);
  for (size_t c = 0; c < details.times.size(); ++c) {
    if (details.rounds.empty()) {
      const int microbatches = plan.microbatches[static_cast<size_t>(details.classes.pipelines[c].pipeline)];
      details.timelines.push_back(
          pipeline_timeline(schedule, details.times[c], microbatches, {}, with_events));
      // Beyond the warm-up a timeline soon repeats.
      const auto stages = static_cast<int>(details.times[c].size());
      steps_ += int64_t{stages} * std::min(microbatches, 16 + 2 * stages);
    }
    out.pipeline_s = std::max(out.pipeline_s, details.timelines[c].makespan_s);
    const std::vector<double>& ends = details.timelines[c].stage_end_s;
    details.backward_done_s.insert(details.backward_done_s.end(), ends.begin(), ends.end());
  }
}

double IterationModel::ready_pipeline_s(const CompactPlan& plan, IterationDetails details) {
  for (std::vector<StageTimes>& pipeline : details.times)
    for (StageTimes& stage : pipeline) stage.ready_s = 0;
  Iteration out;
  play_pipelines(plan, false, details, out);
  return out.pipeline_s;
}

void IterationModel::set_after(const CompactPlan& plan, IterationDetails& details) const {
  const PlanClasses& classes = details.classes;
  const bool sharded = is_sharded(plan, kinds_);
  details.after_s.assign(static_cast<size_t>(classes.ranks()), 0);
  for (size_t c = 0; c < classes.pipelines.size(); ++c) {
    const PipelineClass& of = classes.pipelines[c];
    const auto stages = plan.of(of.pipeline);
    const size_t groups = plan.groups(of.pipeline);
    const auto first = static_cast<size_t>(of.first_rank);
    for (size_t i = 0; i < stages.size(); ++i) {
      const double shards = sharded ? sharers(plan, kinds_, stages[i].first_layer, stages[i].end_layer) : 1;
      details.after_s[first + i % groups] +=
          kinds_.update_s(stages[i].kind, *details.layer_times[c][i].first, stages[i].first_layer,
                          stages[i].end_layer, stages[i].offload) /
          shards;
    }
  }
  const auto rank_of = [&](size_t g, size_t c) { return rank_with(details.groups[g], plan, classes, c); };
  // What the others have updated is gathered when the last of them has.
  details.update_s = details.after_s;
  for (size_t g = 0; g < details.groups.size(); ++g) {
    if (details.gather_s[g] == 0) continue;
    double last_s = 0;
    for (size_t c = 0; c < classes.pipelines.size(); ++c)
      last_s = std::max(last_s, details.update_s[rank_of(g, c)]);
    for (size_t c = 0; c < classes.pipelines.size(); ++c) {
      double& after_s = details.after_s[rank_of(g, c)];
      after_s = std::max(after_s, last_s);
    }
  }
  for (size_t g = 0; g < details.groups.size(); ++g)
    for (size_t c = 0; c < classes.pipelines.size(); ++c)
      details.after_s[rank_of(g, c)] += details.gather_s[g];
  set_ready(plan, details);
}

void IterationModel::set_ready(const CompactPlan& plan, IterationDetails& details) const {
  const PlanClasses& classes = details.classes;
  details.next_after_s = std::numeric_limits<double>::infinity();
  for (const PipelineClass& of : classes.pipelines)
    details.next_after_s =
        std::min(details.next_after_s, details.after_s[static_cast<size_t>(of.first_rank)]);
  for (size_t c = 0; c < classes.pipelines.size(); ++c) {
    const PipelineClass& of = classes.pipelines[c];
    for (size_t g = 0; g < plan.groups(of.pipeline); ++g)
      details.times[c][g].ready_s =
          std::max(0.0, details.after_s[static_cast<size_t>(of.first_rank) + g] - details.next_after_s);
  }
}

void IterationModel::gather_over_mesh(const CompactPlan& plan, IterationDetails& details) {
  if (plan.zero_group > 0) return;  // the sums of buckets have those over copies in them
  const FrameworkStyle& style = kinds_.context().framework;
  const Precision precision = kinds_.context().precision;
  const double part = style.weight_bytes(precision) / style.sync_bytes_at(precision);
  std::vector<double> ready_s =
      replay_gathers(sums_, details.update_s, part, static_cast<int>(details.classes.nodes.size()));
  steps_ += 8 * static_cast<int64_t>(sums_.members.size());
  // Shares are added in turn on processors, like the parts of sums.
  for (size_t g = 0; g < details.groups.size(); ++g)
    for (size_t c = 0; c < details.classes.pipelines.size(); ++c)
      ready_s[rank_with(details.groups[g], plan, details.classes, c)] += part * sums_.processor_s[g] / 2;
  for (size_t r = 0; r < ready_s.size(); ++r) details.after_s[r] = std::max(details.after_s[r], ready_s[r]);
  set_ready(plan, details);
}

void IterationModel::set_bucket_starts(const CompactPlan& plan, const IterationDetails& details,
                                       const std::vector<const std::vector<double>*>& chunk_end_s,
                                       MeshSums& sums) const {
  const PlanClasses& classes = details.classes;
  const bool overlapped = kinds_.context().framework.gradient_sync == FrameworkStyle::Sync::overlapped;
  for (MeshSums::Bucket& bucket : sums.buckets)
    for (MeshSums::Member& member : sums.of(bucket)) {
      const auto c = static_cast<size_t>(classes.pipeline_of_rank[static_cast<size_t>(member.rank)]);
      const PipelineClass& of = classes.pipelines[c];
      if (!overlapped) {
        member.backward_end_s = 0;
        for (size_t i = static_cast<size_t>(member.rank - of.first_rank); i < chunk_end_s[c]->size();
             i += plan.groups(of.pipeline))
          member.backward_end_s = std::max(member.backward_end_s, (*chunk_end_s[c])[i]);
        continue;
      }
      const auto index = static_cast<size_t>(details.groups[static_cast<size_t>(bucket.group)].stage_of[c]);
      const CompactStage& stage = plan.of(of.pipeline)[index];
      const auto& [times, jitter] = details.layer_times[c][index];
      member.backward_end_s =
          (*chunk_end_s[c])[index] -
          jitter * (stage.weight_delay == kWholeBackward
                        ? times->backward(stage.recompute, stage.first_layer, bucket.first_layer)
                        : times->weights(stage.first_layer, bucket.first_layer));
    }
}

void IterationModel::find_timeline_floors(const CompactPlan& plan, const IterationDetails& details,
                                          Iteration& out) {
  const PipelineSchedule schedule =
      schedule_of(kinds_.context().framework, plan.interleave, details.classes.message_bytes);
  floors_.clear();
  for (size_t c = 0; c < details.times.size(); ++c) {
    floors_.push_back(
        timeline_floor(schedule, details.times[c],
                       plan.microbatches[static_cast<size_t>(details.classes.pipelines[c].pipeline)]));
    out.pipeline_s = std::max({out.pipeline_s, floors_.back().makespan_s, details.least_rounds_s});
  }
}

double IterationModel::floor_s(const CompactPlan& plan, const IterationDetails& details,
                               const Iteration& out) {
  double stepping_s = out.pipeline_s;
  if (!sums_.buckets.empty() && details.rounds.empty()) {
    std::vector<const std::vector<double>*> chunk_end_s;
    for (const TimelineFloor& floor : floors_) chunk_end_s.push_back(&floor.chunk_end_s);
    set_bucket_starts(plan, details, chunk_end_s, sums_);
    stepping_s = std::max(
        stepping_s, least_end_s(sums_, details.after_s.size(), static_cast<int>(details.classes.nodes.size()),
                                is_sharded(plan, kinds_)));
  }
  const double tally_s = has_replicas(plan, kinds_) ? sums_.tally_s : 0;
  return stepping_s + tally_s + details.next_after_s;
}

bool IterationModel::sum_over_mesh(const CompactPlan& plan, IterationDetails& details, MeshSums& sums,
                                   double most_s) {
  if (!has_replicas(plan, kinds_)) return true;
  const PlanClasses& classes = details.classes;
  const bool sharded = is_sharded(plan, kinds_);
  std::vector<double> processor_s(details.backward_done_s.size(), 0);
  std::vector<const std::vector<double>*> chunk_end_s;
  for (const Timeline& timeline : details.timelines) chunk_end_s.push_back(&timeline.chunk_end_s);
  for (size_t g = 0; g < details.groups.size(); ++g)
    for (size_t c = 0; c < classes.pipelines.size(); ++c) {
      const PipelineClass& of = classes.pipelines[c];
      const auto stage = static_cast<size_t>(details.groups[g].stage_of[c]);
      if (!details.has_rounds)  // otherwise they are in the backwards
        processor_s[static_cast<size_t>(of.first_rank) + stage % plan.groups(of.pipeline)] +=
            sums.processor_s[g];
      details.group_start_s[g] = std::max(details.group_start_s[g], details.timelines[c].chunk_end_s[stage]);
    }
  set_bucket_starts(plan, details, chunk_end_s, sums);
  steps_ += static_cast<int64_t>(sums.buckets.size() + sums.members.size());
  MeshEnds ends;
  ends.last_s = std::numeric_limits<double>::infinity();
  const int nodes = static_cast<int>(classes.nodes.size());
  if (least_end_s(sums, details.backward_done_s.size(), nodes, sharded) < most_s) {
    steps_ += 6 * static_cast<int64_t>(2 * sums.buckets.size() + sums.members.size());
    ends = replay_mesh(sums, details.backward_done_s, processor_s, nodes, sharded, most_s);
  }
  if (!std::isfinite(ends.last_s)) return false;
  for (size_t b = 0; b < sums.buckets.size(); ++b) {
    const auto g = static_cast<size_t>(sums.buckets[b].group);
    details.group_sync_s[g] +=
        std::max(0.0, ends.bucket_s[b] - std::max(ends.begin_s[b], details.group_start_s[g]));
  }
  for (size_t g = 0; g < details.groups.size(); ++g) details.group_sync_s[g] += sums.processor_s[g];
  for (size_t r = 0; r < sums.copies_s.size(); ++r) {
    ends.rank_s[r] += sums.copies_s[r];
    ends.last_s = std::max(ends.last_s, ends.rank_s[r]);
  }
  details.synced_s = ends.rank_s;
  // The iteration ends for all together: two numbers of all ranks are summed before the optimizer steps.
  const double last_s = ends.last_s + sums.tally_s;
  details.stepping_s.assign(details.synced_s.size(), last_s);
  return true;
}

void IterationModel::sum_over_rings(const CompactPlan& plan, IterationDetails& details) {
  const FrameworkStyle& style = kinds_.context().framework;
  const PlanClasses& classes = details.classes;
  const bool rounds = details.has_rounds;
  const std::vector<SyncTimes>& sums = ring_times_;
  std::vector<double>& ready_s = details.synced_s;
  std::vector<double> last_backward_s;  // when it began, then when the newest sum ended; by class of ranks
  for (const Timeline& timeline : details.timelines)
    last_backward_s.insert(last_backward_s.end(), timeline.last_backward_s.begin(),
                           timeline.last_backward_s.end());
  for (size_t g = 0; g < details.groups.size(); ++g) {
    if (!has_replicas(plan, kinds_)) continue;
    const auto rank_of = [&](size_t c) { return rank_with(details.groups[g], plan, classes, c); };
    double start_s = 0, begin_s = 0;
    for (size_t c = 0; c < classes.pipelines.size(); ++c) {
      start_s = std::max(start_s, ready_s[rank_of(c)]);
      begin_s = std::max(begin_s, last_backward_s[rank_of(c)]);
    }
    // From when every replica is in its last backward, what is summed meanwhile costs nothing; not all of it
    // can be.
    double end_s = start_s + sums[g].reduce_s;
    if (rounds)
      end_s = start_s + sums[g].last_s + sums[g].copies_s +
              (details.groups[g].first_layer == 0 ? details.tied_s : 0);
    else if (style.gradient_sync == FrameworkStyle::Sync::overlapped)
      end_s = std::max(start_s + std::max(sums[g].last_s, sums[g].reduce_s * (1 - style.overlap)),
                       begin_s + sums[g].reduce_s);
    end_s = std::max(end_s, start_s);
    details.group_start_s[g] = start_s;
    details.group_sync_s[g] = end_s - start_s;
    for (size_t c = 0; c < classes.pipelines.size(); ++c) {
      ready_s[rank_of(c)] = end_s;
      last_backward_s[rank_of(c)] = begin_s + sums[g].reduce_s;  // when the next sum can begin
    }
  }
  details.stepping_s = ready_s;
}

void IterationModel::add_messages(const CompactPlan& plan, const PlanClasses& classes,
                                  PerExpense<Spent>& spent) const {
  const double element = element_bytes(kinds_.context().precision);
  for (const PipelineClass& of : classes.pipelines) {
    const auto stages = plan.of(of.pipeline);
    const auto j = static_cast<size_t>(of.pipeline);
    const double sequences = static_cast<double>(plan.microbatch[j]) * plan.microbatches[j];
    for (size_t i = 0; i + 1 < stages.size(); ++i) {
      const CompactStage &from = stages[i], &to = stages[i + 1];
      const auto& sizes = *kinds_[from.kind].sizes;
      const double gb = static_cast<double>(sizes[static_cast<size_t>(from.end_layer) - 1].output_elements) *
                        element * sequences / 1e9;
      const PerExpense<double>& there = kinds_.traffic_per_gb(from.kind, to.kind);
      const PerExpense<double>& back = kinds_.traffic_per_gb(to.kind, from.kind);
      for (const Expense expense : kExpenses)
        spent[expense].traffic += of.count * gb * (there[expense] + back[expense]);
    }
  }
}

double IterationModel::usd_per_s(const CompactPlan& plan) {
  const auto bill_of = [&](const CompactStage& stage) -> const NodeBill* {
    if (stage.node < 0 || !plan.bills) return nullptr;
    const auto& bill = (*plan.bills)[static_cast<size_t>(stage.node)];
    return bill ? &*bill : nullptr;
  };
  is_paid_.resize(std::max(is_paid_.size(), static_cast<size_t>(plan.nodes)));
  double sum = 0;
  for (int j = 0; j < plan.pipelines(); ++j)
    for (const CompactStage& stage : plan.of(j).first(plan.groups(j))) {
      const NodeBill* bill = bill_of(stage);
      if (bill == nullptr) {
        sum += kinds_[stage.kind].rate[Expense::cost].idle_per_s;
        continue;
      }
      char& is_paid = is_paid_[static_cast<size_t>(stage.node)];
      if (bill->whole_gpus == 0 || !is_paid)
        sum += bill->paid(kinds_.shape(stage.kind).gpus()) * bill->usd_per_gpu_s;
      is_paid = 1;
    }
  for (const CompactStage& stage : plan.stages)
    if (stage.node >= 0) is_paid_[static_cast<size_t>(stage.node)] = 0;
  return sum;
}

void IterationModel::set_spent(const CompactPlan& plan, const IterationDetails& details, Iteration& out) {
  out.spent[Expense::cost].gpus = out.iteration_s * usd_per_s(plan);
  for (size_t c = 0; c < details.classes.pipelines.size(); ++c) {
    const PipelineClass& of = details.classes.pipelines[c];
    const auto stages = plan.of(of.pipeline);
    const size_t groups = plan.groups(of.pipeline);
    for (size_t g = 0; g < groups; ++g) {
      double busy_s = 0;
      for (size_t i = g; i < stages.size(); i += groups)
        busy_s += details.times[c][i].forward_s + details.times[c][i].backward_s;
      busy_s *= plan.microbatches[static_cast<size_t>(of.pipeline)];
      out.spent[Expense::energy].gpus +=
          of.count * kinds_[stages[g].kind].rate[Expense::energy].spent(out.iteration_s, busy_s);
    }
  }
  if (!kinds_.pays_for_traffic()) return;
  add_messages(plan, details.classes, out.spent);
  add_sync_traffic(plan, details.classes, details.groups, kinds_, out.spent);
}

Iteration IterationModel::iteration(const CompactPlan& plan, bool with_events, IterationDetails& details,
                                    double most_s, bool* fits) {
  const FrameworkStyle& style = kinds_.context().framework;
  const bool mesh = style.sums == FrameworkStyle::Sums::mesh;
  Iteration out;
  const auto stop_at = [&](double least_s) {
    out.iteration_s = std::max(least_s, most_s);
    return out;
  };
  steps_ += 100 + 4 * static_cast<int64_t>(plan.stages.size());
  find_classes(plan, kinds_, details.classes);
  const PlanClasses& classes = details.classes;
  const PipelineSchedule schedule = schedule_of(style, plan.interleave, classes.message_bytes);
  for (const PipelineClass& of : classes.pipelines)
    check_schedule(schedule, static_cast<int>(plan.groups(of.pipeline)),
                   plan.microbatches[static_cast<size_t>(of.pipeline)]);
  set_times(plan, details, out);
  find_layer_groups(plan, classes, details.groups);
  for (std::vector<double>* of_group : {&details.group_start_s, &details.group_sync_s, &details.gather_s})
    of_group->assign(details.groups.size(), 0);
  add_rounds(plan, details);
  set_after(plan, details);
  const bool bounded = most_s < std::numeric_limits<double>::infinity();
  if (bounded) {
    find_timeline_floors(plan, details, out);
    const double least_s = out.pipeline_s + details.next_after_s + out.overhead_s;
    if (least_s >= most_s) return stop_at(least_s);
  }
  if (fits != nullptr && !(*fits = this->fits(plan, classes))) return out;
  if (mesh) {
    if (!details.has_rounds) find_sums(plan, details);
    // Updated weights are handed out afterwards, unless they stay sharded.
    const Zero zero = zero_of(plan, kinds_);
    const bool sharded = shards_optimizer(zero) && zero < Zero::parameters;
    const Precision precision = kinds_.context().precision;
    for (size_t g = 0; sharded && g < details.groups.size(); ++g)
      details.gather_s[g] =
          style.weight_bytes(precision) / style.sync_bytes_at(precision) * sums_.gather_s[g];
    if (sharded) set_after(plan, details);
    if (bounded && sharded) find_timeline_floors(plan, details, out);
    if (bounded)
      if (const double least_s = floor_s(plan, details, out) + out.overhead_s; least_s >= most_s)
        return stop_at(least_s);
    if (sharded) gather_over_mesh(plan, details);
  } else {
    if (!details.has_rounds) find_sums(plan, details);
    const bool gathers_after = zero_of(plan, kinds_) < Zero::parameters;
    for (size_t g = 0; gathers_after && g < details.groups.size(); ++g)
      details.gather_s[g] = ring_times_[g].gather_s;
    set_after(plan, details);
  }

  play_pipelines(plan, with_events, details, out);
  if (out.pipeline_s + out.overhead_s >= most_s) return stop_at(out.pipeline_s + out.overhead_s);
  details.synced_s = details.stepping_s = details.backward_done_s;
  if (!details.rounds.empty()) {
    sum_after_rounds(plan, details);
  } else if (mesh) {
    const double left_s = most_s - out.overhead_s - sums_.tally_s - details.next_after_s;
    if (!sum_over_mesh(plan, details, sums_, left_s)) return stop_at(most_s);
  } else {
    sum_over_rings(plan, details);
  }

  double synced_s = out.pipeline_s, end_s = 0;
  for (size_t r = 0; r < details.after_s.size(); ++r) {
    synced_s = std::max(synced_s, details.stepping_s[r]);
    end_s = std::max(end_s, details.stepping_s[r] + std::min(details.after_s[r], details.next_after_s));
  }
  end_s = std::max(end_s, synced_s);
  out.sync_s = synced_s - out.pipeline_s;
  out.update_s = end_s - synced_s;
  out.iteration_s = end_s + out.overhead_s;
  set_spent(plan, details, out);
  return out;
}

}  // namespace sailor::native
