#include "planner/simulator/mesh_sync.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace sailor::native {
namespace {

// Larger groups gather small messages at one rank and hand the result out.
constexpr int kFewRanks = 4;
constexpr int kPhases = 2;     // parts, then sums
constexpr double kMany = 1e6;  // senders: only the node's rate matters

// Members of a group that are alike for the network.
struct Kind {
  const PlanStage* stage;
  std::string node;
  int count = 0;
};

std::string node_of(const PlanStage& stage, size_t pipeline, int index) {
  // A stage that is not placed yet has a node of its own.
  return stage.node.empty() ? std::to_string(pipeline) + "." + std::to_string(index) : stage.node;
}

std::vector<Kind> kinds_of(const Plan& plan, const LayerGroup& group) {
  std::map<std::tuple<std::string, std::string, std::string, int>, Kind> kinds;
  for (size_t j = 0; j < plan.pipelines.size(); ++j) {
    const int index = group.stage_of[j];
    const PlanStage& stage = plan.pipelines[j].stages[static_cast<size_t>(index)];
    const std::string node = node_of(stage, j, index);
    Kind& kind = kinds[{node, stage.gpu_type, stage.zone, stage.tp}];
    kind.stage = &stage;
    kind.node = node;
    ++kind.count;
  }
  std::vector<Kind> list;
  for (const auto& [key, kind] : kinds) list.push_back(kind);
  return list;
}

double transfer_s(const LinkCurve& link, double bytes, double senders) {
  return std::max(0.0, link.time_s(bytes, senders) - link.latency_s());
}

struct Sum {
  const PlanningContext& context;
  std::vector<Kind> kinds;
  double whole_bytes;  // of the layers, over all TP ranks of a replica
  double members;

  // Adds each node's work, and returns the time of the sum by itself.
  double play(size_t group, std::vector<MeshSums::NodeWork>& work, double& processor_s) const {
    double slowest_s = 0, latency_s = 0, most_shard = 0, own_s = 0;
    std::map<std::string, double> cards_s;
    for (const Kind& from : kinds) {
      const double shard = whole_bytes / from.stage->tp, part = shard / members;
      most_shard = std::max(most_shard, shard);
      own_s = std::max(own_s, shard * profile_of(context, from.stage->gpu_type).overheads.sync_s_per_byte);
      double near_s = 0, far_s = 0, card_s = 0;
      for (const Kind& to : kinds) {
        const int others = to.count - (&to == &from ? 1 : 0);
        if (others == 0) continue;
        const bool near = from.node == to.node;
        const LinkCurve& link =
            link_of(context, link_end(*from.stage, from.stage->tp), link_end(*to.stage, to.stage->tp), near);
        latency_s = std::max(latency_s, link.latency_s());
        (near ? near_s : far_s) += others * transfer_s(link, part, 1);
        if (!near) card_s += others * from.stage->tp * transfer_s(link, part, kMany) / kMany;
      }
      slowest_s = std::max({slowest_s, near_s, far_s});
      cards_s[from.node] += from.count * card_s;
    }
    for (const auto& [node, busy_s] : cards_s) {
      slowest_s = std::max(slowest_s, busy_s);
      if (busy_s > 0) work.push_back({node, group, kPhases * busy_s});
    }
    const double buckets =
        std::max(1.0, std::ceil(most_shard / static_cast<double>(context.framework.sync_bucket_bytes)));
    processor_s = own_s;
    return kPhases * (slowest_s + buckets * latency_s) + own_s;
  }
};

}  // namespace

MeshSums mesh_sums(const PlanningContext& context, const Plan& plan, const std::vector<LayerGroup>& groups) {
  MeshSums sums;
  sums.alone_s.assign(groups.size(), 0);
  sums.processor_s.assign(groups.size(), 0);
  double latency_s = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      const PlanStage& first = plan.pipelines[0].stages[0];
      if (&stage == &first) continue;
      const LinkCurve* link = find_link(context.profiles.network, link_end(stage, stage.tp),
                                        link_end(first, first.tp), on_one_node(stage, first));
      if (link != nullptr) latency_s = std::max(latency_s, link->latency_s());
    }
  const int ranks = num_ranks(plan);
  if (ranks > 1) sums.tally_s = (ranks <= kFewRanks ? 1 : 2) * latency_s;
  if (plan.pipelines.size() < 2) return sums;
  const double element = context.framework.sync_bytes_at(context.job.training.precision);
  for (size_t g = 0; g < groups.size(); ++g) {
    const LayerGroup& group = groups[g];
    const PlanStage& any = plan.pipelines[0].stages[static_cast<size_t>(group.stage_of[0])];
    const std::vector<LayerSizes>& sizes = sizes_of(context, any.tp);
    double whole_bytes = 0;
    for (int layer = group.first_layer; layer < group.end_layer; ++layer)
      whole_bytes += static_cast<double>(sizes.at(static_cast<size_t>(layer)).parameters) * any.tp * element;
    const Sum sum{context, kinds_of(plan, group), whole_bytes, static_cast<double>(plan.pipelines.size())};
    sums.alone_s[g] = sum.play(g, sums.work, sums.processor_s[g]);
  }
  return sums;
}

}  // namespace sailor::native
