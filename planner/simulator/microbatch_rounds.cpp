#include "planner/simulator/microbatch_rounds.h"

#include <algorithm>

namespace sailor::native {
namespace {

std::vector<std::vector<RoundTimes>> by_stage(const CompactPlan& plan, const PlanClasses& classes) {
  std::vector<std::vector<RoundTimes>> out;
  for (const PipelineClass& of : classes.pipelines) out.emplace_back(plan.of(of.pipeline).size());
  return out;
}

}  // namespace

std::vector<std::vector<RoundTimes>> ring_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups,
                                                 const std::vector<SyncTimes>& times, Zero zero) {
  std::vector<std::vector<RoundTimes>> out = by_stage(plan, classes);
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t c = 0; c < out.size(); ++c) {
      RoundTimes& of = out[c][static_cast<size_t>(groups[g].stage_of[c])];
      of.reduce_s += times[g].reduce_s;
      if (zero >= Zero::parameters) of.gather_s += times[g].gather_s;
    }
  return out;
}

std::vector<std::vector<RoundTimes>> mesh_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups, const MeshSums& sums,
                                                 Zero zero, double weight_bytes_per_gradient_byte) {
  std::vector<std::vector<RoundTimes>> out = by_stage(plan, classes);
  std::vector<double> card_s(classes.nodes.size(), 0);
  for (const MeshSums::Bucket& bucket : sums.buckets) {
    double slowest_s = 0;
    for (const MeshSums::Member& member : sums.of(bucket)) {
      slowest_s = std::max(slowest_s, member.port_s);
      card_s[static_cast<size_t>(member.node)] += member.count * member.card_s;
    }
    const std::vector<int>& stage_of = groups[static_cast<size_t>(bucket.group)].stage_of;
    for (size_t c = 0; c < out.size(); ++c)
      out[c][static_cast<size_t>(stage_of[c])].reduce_s += slowest_s + bucket.latency_s;
  }
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t c = 0; c < out.size(); ++c)
      out[c][static_cast<size_t>(groups[g].stage_of[c])].processor_s += sums.processor_s[g];
  for (size_t c = 0; c < out.size(); ++c) {
    const PipelineClass& of = classes.pipelines[c];
    for (size_t i = 0; i < out[c].size(); ++i) {
      const size_t rank = static_cast<size_t>(of.first_rank) + i % plan.groups(of.pipeline);
      RoundTimes& times = out[c][i];
      for (const auto& [node, count] : classes.nodes_of_rank[rank])
        times.reduce_s = std::max(times.reduce_s, card_s[static_cast<size_t>(node)] / plan.interleave);
      if (zero >= Zero::parameters) times.gather_s = weight_bytes_per_gradient_byte * times.reduce_s;
    }
  }
  return out;
}

RoundDelays round_delays(const RoundTimes& times, double rounds, double forward_s, double backward_s,
                         const FrameworkStyle& style) {
  const bool overlapped = style.gradient_sync == FrameworkStyle::Sync::overlapped;
  // Over a mesh the processors' part is known, and nothing else is in the way.
  const double least = style.sums == FrameworkStyle::Sums::mesh ? 0 : 1 - style.overlap;
  const auto delay_s = [&](double moved_s, double computed_s) {
    moved_s *= rounds;
    return overlapped ? std::max({0.0, moved_s * least, moved_s - computed_s}) : moved_s;
  };
  return {delay_s(times.gather_s, forward_s),
          delay_s(times.gather_s + times.reduce_s, backward_s) + rounds * times.processor_s};
}

}  // namespace sailor::native
