#include "planner/simulator/microbatch_rounds.h"

#include <algorithm>

namespace sailor::native {
namespace {

// With sequence parallelism the ranks of a TP group sum replicated parameters before each round. So those
// that had the first shares of the round before wait for those that had the last, and do not send their first
// parts meanwhile (MeshSums::Bucket::later_s). On processors about half of that is seen: ranks are not quite
// aligned.
constexpr double kAlignedTurns = 0.5;

std::vector<std::vector<RoundTimes>> by_stage(const CompactPlan& plan, const PlanClasses& classes) {
  std::vector<std::vector<RoundTimes>> out;
  for (const PipelineClass& of : classes.pipelines) out.emplace_back(plan.of(of.pipeline).size());
  return out;
}

double reduced_s(const RoundTimes& times) {
  double sum_s = 0;
  for (const LayerRound& layer : times.layers) sum_s += layer.reduce_s;
  return sum_s;
}

bool is_ours(const FrameworkStyle& style) {
  return style.zero == Zero::none;
}

}  // namespace

std::vector<std::vector<RoundTimes>> ring_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups,
                                                 const std::vector<SyncTimes>& times, StageKinds& kinds,
                                                 Zero zero) {
  std::vector<std::vector<RoundTimes>> out = by_stage(plan, classes);
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t c = 0; c < out.size(); ++c) {
      const auto stage = static_cast<size_t>(groups[g].stage_of[c]);
      const int kind = plan.of(classes.pipelines[c].pipeline)[stage].kind;
      // Matrices that the first and the last layer share are one in the sum of a rank that holds both.
      const std::vector<LayerSizes>& sizes = *kinds[kind].sizes;
      const bool both_ends =
          groups[g].first_layer == 0 && groups[g].end_layer == static_cast<int>(sizes.size());
      const double all = kinds.parameters(kind, groups[g].first_layer, groups[g].end_layer) -
                         (both_ends ? static_cast<double>(sizes.back().tied_parameters) : 0);
      for (int layer = groups[g].first_layer; layer < groups[g].end_layer; ++layer) {
        const double part = all > 0 ? kinds.parameters(kind, layer, layer + 1) / all : 0;
        out[c][stage].layers.push_back(
            {zero >= Zero::parameters ? part * times[g].gather_s : 0, part * times[g].reduce_s});
      }
    }
  return out;
}

std::vector<std::vector<RoundTimes>> mesh_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups, const MeshSums& sums,
                                                 Zero zero, double weight_bytes_per_gradient_byte,
                                                 RoundCards& cards) {
  std::vector<std::vector<RoundTimes>> out = by_stage(plan, classes);
  const auto layers = static_cast<size_t>(groups.back().end_layer);
  cards.uses.assign(static_cast<size_t>(num_zero_groups(plan)) * layers, {});
  cards.gather_part = weight_bytes_per_gradient_byte;
  const auto group_of = [&](int rank) {
    const auto c = static_cast<size_t>(classes.pipeline_of_rank[static_cast<size_t>(rank)]);
    return static_cast<size_t>(zero_group_of(plan, classes.pipelines[c].pipeline));
  };
  for (size_t b = sums.buckets.size(); b-- > 0;) {  // from the first layer up
    const MeshSums::Bucket& bucket = sums.buckets[b];
    double slowest_s = 0, first_s = 0;
    for (const MeshSums::Member& member : sums.of(bucket)) {
      slowest_s = std::max(slowest_s, member.port_s);
      first_s = std::max({first_s, member.port_s * member.first, member.card_first_s});
      if (member.card_s > 0)
        cards.uses[group_of(member.rank) * layers + static_cast<size_t>(bucket.first_layer)].push_back(
            {member.node, member.count * member.card_s});
    }
    LayerRound round{0, slowest_s + bucket.latency_s};
    if (plan.sequence_parallel) {
      const double in_turns_s = first_s + bucket.later_s + bucket.latency_s;
      round.reduce_s += kAlignedTurns * std::max(0.0, in_turns_s - round.reduce_s);
    }
    if (zero >= Zero::parameters) round.gather_s = weight_bytes_per_gradient_byte * round.reduce_s;
    const std::vector<int>& stage_of = groups[static_cast<size_t>(bucket.group)].stage_of;
    for (size_t c = 0; c < out.size(); ++c) out[c][static_cast<size_t>(stage_of[c])].layers.push_back(round);
  }
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t c = 0; c < out.size(); ++c)
      out[c][static_cast<size_t>(groups[g].stage_of[c])].processor_s += sums.processor_s[g];
  return out;
}

std::vector<LayerWork> layer_work(const CompactStage& stage, const KindTimes& times, double jitter,
                                  StageKinds& kinds, bool splits_tokens) {
  std::vector<LayerWork> layers;
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    const StageRecompute recompute = stage.recompute.of_block(layer - std::max(stage.first_layer, 1));
    layers.push_back({jitter * times.forward(layer, layer + 1),
                      jitter * times.backward(recompute, layer, layer + 1),
                      splits_tokens ? kinds.token_sum_s(stage.kind, layer) : 0});
  }
  return layers;
}

void leave_out_tied(const CompactStage& stage, const StageKinds& kinds, RoundTimes& times) {
  if (!is_ours(kinds.context().framework)) return;
  const std::vector<LayerSizes>& sizes = *kinds[stage.kind].sizes;
  const auto tied = static_cast<double>(sizes.back().tied_parameters);
  const auto leave_out = [&](LayerRound& round, const LayerSizes& layer) {
    if (layer.parameters <= 0) return;
    const double part = std::min(1.0, tied / static_cast<double>(layer.parameters));
    times.tied_s = std::max(times.tied_s, part * round.reduce_s);
    round = {round.gather_s * (1 - part), round.reduce_s * (1 - part)};
  };
  if (stage.first_layer == 0) leave_out(times.layers.front(), sizes.front());
  if (stage.end_layer == static_cast<int>(sizes.size())) leave_out(times.layers.back(), sizes.back());
}

bool has_lockstep_rounds(const FrameworkStyle& style) {
  return is_ours(style) && style.gradient_sync == FrameworkStyle::Sync::overlapped;
}

RoundDelays round_delays(const RoundTimes& times, const std::vector<LayerWork>& layers, double rounds,
                         const FrameworkStyle& style) {
  const bool overlapped = style.gradient_sync == FrameworkStyle::Sync::overlapped;
  const double least = 1 - style.overlap;
  double gathered_s = 0, forward_s = 0, backward_s = 0;
  for (const LayerRound& layer : times.layers) gathered_s += layer.gather_s;
  for (const LayerWork& layer : layers) {
    forward_s += layer.forward_s;
    backward_s += layer.backward_s;
  }
  const auto delay_s = [&](double moved_s, double computed_s) {
    moved_s *= rounds;
    return overlapped ? std::max({0.0, moved_s * least, moved_s - computed_s}) : moved_s;
  };
  return {delay_s(gathered_s, forward_s),
          delay_s(gathered_s + reduced_s(times), backward_s) + rounds * times.processor_s};
}

}  // namespace sailor::native
