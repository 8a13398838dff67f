#include "planner/simulator/plan_classes.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "planner/profile/collectives.h"

namespace sailor::native {
namespace {

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// GPUs of each node that send to other nodes at the same time, by direction.
struct Senders {
  std::vector<int> forward, backward;
};

class Classifier {
 public:
  Classifier(const CompactPlan& plan, StageKinds& kinds) : plan_(plan), kinds_(kinds) {}

  PlanClasses classes() {
    count_senders();
    classify_pipelines();
    classify_nodes();
    const CompactStage& first = plan_.stages.front();
    for (const CompactStage& stage : plan_.stages)
      out_.several_nodes = out_.several_nodes || (&stage != &first && !on_one_node(stage, first));
    return std::move(out_);
  }

 private:
  int tp(const CompactStage& stage) const { return kinds_[stage.kind].tp; }
  size_t groups(std::span<const CompactStage> stages) const {
    return stages.size() / static_cast<size_t>(plan_.interleave);
  }

  void count_senders() {
    senders_.forward.assign(static_cast<size_t>(plan_.nodes), 0);
    senders_.backward = senders_.forward;
    std::vector<int> down, up;
    for (int j = 0; j < plan_.pipelines(); ++j) {
      const auto stages = plan_.of(j);
      const size_t count = groups(stages);
      // A group of GPUs sends one message at a time, whatever its number of chunks.
      down.assign(count, 0);
      up.assign(count, 0);
      for (size_t i = 0; i + 1 < stages.size(); ++i) {
        const CompactStage &from = stages[i], &to = stages[i + 1];
        if (from.node < 0 || to.node < 0 || from.node == to.node) continue;
        const int links = std::min(tp(from), tp(to));
        down[i % count] = std::max(down[i % count], links);
        up[(i + 1) % count] = std::max(up[(i + 1) % count], links);
      }
      for (size_t g = 0; g < count; ++g) {
        if (down[g] > 0) senders_.forward[static_cast<size_t>(stages[g].node)] += down[g];
        if (up[g] > 0) senders_.backward[static_cast<size_t>(stages[g].node)] += up[g];
      }
    }
  }

  // GPUs that send at once where `from` sends to `to`.
  int senders(const std::vector<int>& by_node, const CompactStage& from, const CompactStage& to) const {
    if (from.node < 0 || from.node == to.node) return std::min(tp(from), tp(to));
    const int count = by_node[static_cast<size_t>(from.node)];
    return count > 0 ? count : std::min(tp(from), tp(to));
  }

  // All that the times of a pipeline depend on.
  void key_of(int pipeline, std::vector<int>& key) const {
    const auto stages = plan_.of(pipeline);
    key.assign(1, plan_.microbatches[static_cast<size_t>(pipeline)]);
    for (size_t i = 0; i < stages.size(); ++i) {
      const CompactStage& stage = stages[i];
      key.insert(key.end(), {stage.kind, stage.first_layer, static_cast<int>(stage.recompute)});
      if (i + 1 < stages.size()) {
        const CompactStage& next = stages[i + 1];
        const bool near = on_one_node(stage, next);
        key.insert(key.end(), {near ? -1 : senders(senders_.forward, stage, next),
                               near ? -1 : senders(senders_.backward, next, stage)});
      }
    }
  }

  void classify_pipelines() {
    std::vector<std::vector<int>> keys;
    std::vector<int> key;
    for (int j = 0; j < plan_.pipelines(); ++j) {
      key_of(j, key);
      size_t at = 0;
      // Neighbours are mostly alike.
      if (!out_.of_pipeline.empty() && keys[static_cast<size_t>(out_.of_pipeline.back())] == key)
        at = static_cast<size_t>(out_.of_pipeline.back());
      else
        at = static_cast<size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
      if (at == keys.size()) {
        keys.push_back(key);
        add_class(j);
      }
      ++out_.pipelines[at].count;
      out_.of_pipeline.push_back(static_cast<int>(at));
    }
  }

  void add_class(int pipeline) {
    const auto stages = plan_.of(pipeline);
    PipelineClass added;
    added.pipeline = pipeline;
    added.first_rank = out_.ranks();
    out_.pipeline_of_rank.resize(out_.pipeline_of_rank.size() + groups(stages),
                                 static_cast<int>(out_.pipelines.size()));
    added.send_forward_s.assign(stages.size(), 0);
    added.send_backward_s.assign(stages.size(), 0);
    for (size_t i = 0; i + 1 < stages.size(); ++i) {
      const CompactStage &from = stages[i], &to = stages[i + 1];
      added.send_forward_s[i] = message_s(from, to, from.end_layer, senders(senders_.forward, from, to));
      added.send_backward_s[i + 1] =
          message_s(to, from, from.end_layer, senders(senders_.backward, to, from));
    }
    out_.pipelines.push_back(std::move(added));
  }

  // Over the boundary before `layer`.
  double message_s(const CompactStage& from, const CompactStage& to, int layer, int senders) const {
    const PlanningContext& context = kinds_.context();
    const StageKind& kind = kinds_[from.kind];
    const double bytes = static_cast<double>((*kind.sizes)[static_cast<size_t>(layer) - 1].output_elements) *
                         element_bytes(context.job.training.precision) * plan_.microbatch;
    const LinkCurve& link = kinds_.link(from.kind, to.kind, on_one_node(from, to));
    return kind.profile->overheads.message_slowdown *
           (context.framework.partitioned_messages
                ? scatter_gather_s(link, bytes, kind.tp, kinds_[to.kind].tp, senders)
                : link.time_s(bytes, senders));
  }

  void classify_nodes() {
    // Ranks by node; a node of its own for each that is not placed.
    std::vector<uint64_t> hash(static_cast<size_t>(plan_.nodes), 0);
    std::vector<int> single(static_cast<size_t>(out_.ranks()), 0);  // not placed, by class of ranks
    const auto for_each_rank = [&](const auto& visit) {
      for (int j = 0; j < plan_.pipelines(); ++j) {
        const auto stages = plan_.of(j);
        const int first =
            out_.pipelines[static_cast<size_t>(out_.of_pipeline[static_cast<size_t>(j)])].first_rank;
        for (size_t g = 0; g < groups(stages); ++g) visit(stages[g].node, first + static_cast<int>(g));
      }
    };
    for_each_rank([&](int node, int rank) {
      if (node < 0)
        ++single[static_cast<size_t>(rank)];
      else
        hash[static_cast<size_t>(node)] += mixed(static_cast<uint64_t>(rank));
    });
    std::unordered_map<uint64_t, int> classes;
    std::vector<int> class_of(hash.size(), -1), shown;  // by class: the node that shows what it holds
    for (size_t node = 0; node < hash.size(); ++node) {
      const auto [it, added] = classes.try_emplace(hash[node], static_cast<int>(out_.nodes.size()));
      if (added) {
        out_.nodes.emplace_back();
        shown.push_back(static_cast<int>(node));
      }
      class_of[node] = it->second;
      ++out_.nodes[static_cast<size_t>(it->second)].nodes;
    }
    for_each_rank([&](int node, int rank) {
      if (node < 0 || shown[static_cast<size_t>(class_of[static_cast<size_t>(node)])] != node) return;
      auto& ranks = out_.nodes[static_cast<size_t>(class_of[static_cast<size_t>(node)])].ranks;
      if (ranks.empty() || ranks.back().first != rank)
        ranks.emplace_back(rank, 1);
      else
        ++ranks.back().second;
    });
    for (NodeClass& node : out_.nodes) join_equal(node.ranks);
    for (size_t rank = 0; rank < single.size(); ++rank)
      if (single[rank] > 0) out_.nodes.push_back({{{static_cast<int>(rank), 1}}, single[rank]});
    out_.nodes_of_rank.resize(static_cast<size_t>(out_.ranks()));
    for (size_t n = 0; n < out_.nodes.size(); ++n)
      for (const auto& [rank, count] : out_.nodes[n].ranks)
        out_.nodes_of_rank[static_cast<size_t>(rank)].emplace_back(static_cast<int>(n), count);
    const int node = plan_.stages.front().node;
    out_.first_is_placed = node >= 0;
    if (node >= 0) out_.first_node = class_of[static_cast<size_t>(node)];
  }

  static void join_equal(std::vector<std::pair<int, int>>& ranks) {
    std::sort(ranks.begin(), ranks.end());
    size_t kept = 0;
    for (size_t i = 1; i < ranks.size(); ++i) {
      if (ranks[i].first == ranks[kept].first)
        ranks[kept].second += ranks[i].second;
      else
        ranks[++kept] = ranks[i];
    }
    if (!ranks.empty()) ranks.resize(kept + 1);
  }

  const CompactPlan& plan_;
  StageKinds& kinds_;
  Senders senders_;
  PlanClasses out_;
};

}  // namespace

PlanClasses classes_of(const CompactPlan& plan, StageKinds& kinds) {
  return Classifier(plan, kinds).classes();
}

std::vector<LayerGroup> layer_groups(const CompactPlan& plan, const PlanClasses& classes) {
  std::vector<int> cuts;
  for (const PipelineClass& of : classes.pipelines) {
    cuts.push_back(0);
    for (const CompactStage& stage : plan.of(of.pipeline)) cuts.push_back(stage.end_layer);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<LayerGroup> groups;
  std::vector<int> stage_of(classes.pipelines.size(), 0);
  for (size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
    for (size_t c = 0; c < stage_of.size(); ++c) {
      const auto stages = plan.of(classes.pipelines[c].pipeline);
      while (stages[static_cast<size_t>(stage_of[c])].end_layer <= cuts[cut]) ++stage_of[c];
    }
    groups.push_back({cuts[cut], cuts[cut + 1], stage_of});
  }
  return groups;
}

}  // namespace sailor::native
