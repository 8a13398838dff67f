#include "planner/simulator/plan_classes.h"

#include <algorithm>
#include <cstdint>

#include "planner/profile/collectives.h"

namespace sailor::native {
namespace {

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The next entry of a list that is filled again.
template <typename T>
T& next_of(std::vector<T>& list, size_t& count) {
  if (count == list.size()) list.emplace_back();
  return list[count++];
}

class Classifier {
  using Senders = PlanClasses::Memory::Senders;

 public:
  Classifier(const CompactPlan& plan, StageKinds& kinds, PlanClasses& out)
      : plan_(plan), kinds_(kinds), out_(out), memory_(out.memory) {
    memory_.boundaries.clear();
    memory_.first_boundary.clear();
  }

  void run() {
    count_senders();
    classify_pipelines();
    classify_nodes();
    const CompactStage& first = plan_.stages.front();
    out_.several_nodes = std::any_of(plan_.stages.begin() + 1, plan_.stages.end(),
                                     [&](const CompactStage& stage) { return !on_one_node(stage, first); });
  }

 private:
  int links(const CompactStage& a, const CompactStage& b) const {
    return std::min(kinds_.shape(a.kind).gpus(), kinds_.shape(b.kind).gpus());
  }

  // GPUs of each node that send to other nodes at the same time, by direction.
  void count_senders() {
    std::vector<int>&down = memory_.down, &up = memory_.up;
    memory_.forward.assign(static_cast<size_t>(plan_.nodes), 0);
    memory_.backward.assign(static_cast<size_t>(plan_.nodes), 0);
    for (int j = 0; j < plan_.pipelines(); ++j) {
      const auto stages = plan_.of(j);
      const size_t count = plan_.groups(j);
      // A GPU group sends one message at a time, for any number of chunks.
      down.assign(count, 0);
      up.assign(count, 0);
      for (size_t i = 0, g = 0; i + 1 < stages.size(); ++i) {
        const size_t next = g + 1 == count ? 0 : g + 1;
        const CompactStage &from = stages[i], &to = stages[i + 1];
        if (from.node >= 0 && to.node >= 0 && from.node != to.node) {
          down[g] = std::max(down[g], links(from, to));
          up[next] = std::max(up[next], links(from, to));
        }
        g = next;
      }
      for (size_t g = 0; g < count; ++g) {
        if (down[g] > 0) memory_.forward[static_cast<size_t>(stages[g].node)] += down[g];
        if (up[g] > 0) memory_.backward[static_cast<size_t>(stages[g].node)] += up[g];
      }
    }
  }

  // GPUs that send at once where `from` sends to `to`.
  int senders(const std::vector<int>& by_node, const CompactStage& from, const CompactStage& to) const {
    if (from.node < 0 || from.node == to.node) return links(from, to);
    const int count = by_node[static_cast<size_t>(from.node)];
    return count > 0 ? count : links(from, to);
  }

  // What messages over a boundary depend on besides the stages.
  Senders boundary(const CompactStage& from, const CompactStage& to) const {
    if (on_one_node(from, to)) return {};
    return {senders(memory_.forward, from, to), senders(memory_.backward, to, from)};
  }

  // Are all times of a pipeline those of a class?
  bool belongs(int pipeline, size_t of_class) const {
    const int shown = out_.pipelines[of_class].pipeline;
    if (zero_group_of(plan_, pipeline) != zero_group_of(plan_, shown)) return false;
    const auto stages = plan_.of(pipeline), like = plan_.of(shown);
    if (stages.size() != like.size() ||
        plan_.microbatches[static_cast<size_t>(pipeline)] != plan_.microbatches[static_cast<size_t>(shown)] ||
        plan_.microbatch[static_cast<size_t>(pipeline)] != plan_.microbatch[static_cast<size_t>(shown)])
      return false;
    const Senders* boundaries = memory_.boundaries.data() + memory_.first_boundary[of_class];
    for (size_t i = 0; i < stages.size(); ++i) {
      const CompactStage &a = stages[i], &b = like[i];
      if (a.kind != b.kind || a.first_layer != b.first_layer || a.recompute != b.recompute ||
          a.weight_delay != b.weight_delay || a.offload != b.offload)
        return false;
      if (i + 1 < stages.size() && !(boundary(a, stages[i + 1]) == boundaries[i])) return false;
    }
    return true;
  }

  void classify_pipelines() {
    out_.of_pipeline.clear();
    out_.message_bytes = 0;
    out_.pipeline_of_rank.clear();
    size_t count = 0, at = 0;
    for (int j = 0; j < plan_.pipelines(); ++j) {
      // Neighbours are mostly alike.
      if (j == 0 || !belongs(j, at)) {
        at = 0;
        while (at < count && !belongs(j, at)) ++at;
        if (at == count) add_class(j, next_of(out_.pipelines, count));
      }
      ++out_.pipelines[at].count;
      out_.of_pipeline.push_back(static_cast<int>(at));
    }
    out_.pipelines.resize(count);
  }

  void add_class(int pipeline, PipelineClass& added) {
    const auto stages = plan_.of(pipeline);
    const int microbatch = plan_.microbatch[static_cast<size_t>(pipeline)];
    added.pipeline = pipeline;
    added.count = 0;
    added.first_rank = out_.ranks();
    out_.pipeline_of_rank.resize(out_.pipeline_of_rank.size() + plan_.groups(pipeline),
                                 static_cast<int>(&added - out_.pipelines.data()));
    added.send_forward_s.assign(stages.size(), 0);
    added.send_backward_s.assign(stages.size(), 0);
    memory_.first_boundary.push_back(memory_.boundaries.size());
    for (size_t i = 0; i + 1 < stages.size(); ++i) {
      const CompactStage &from = stages[i], &to = stages[i + 1];
      memory_.boundaries.push_back(boundary(from, to));
      added.send_forward_s[i] =
          message_s(from, to, from.end_layer, microbatch, senders(memory_.forward, from, to));
      added.send_backward_s[i + 1] =
          message_s(to, from, from.end_layer, microbatch, senders(memory_.backward, to, from));
    }
  }

  // Of what passes a boundary, `bytes` in all: the most that one GPU sends.
  double share_of_a_rank(double bytes, int sending, int receiving) const {
    const FrameworkStyle& style = kinds_.context().framework;
    const double share = 1.0 / std::min(sending, receiving);
    if (plan_.sequence_parallel) return share;
    if (bytes < static_cast<double>(style.whole_message_bytes)) return (receiving + sending - 1) / sending;
    return style.partitioned_messages ? share : 1;
  }

  // Over the boundary before `layer`.
  double message_s(const CompactStage& from, const CompactStage& to, int layer, int microbatch, int senders) {
    const PlanningContext& context = kinds_.context();
    const StageKind& kind = kinds_[from.kind];
    const double bytes = static_cast<double>((*kind.sizes)[static_cast<size_t>(layer) - 1].output_elements) *
                         element_bytes(context.precision) * microbatch;
    const LinkCurve& link = kinds_.link(from.kind, to.kind, on_one_node(from, to));
    const PlatformOverheads& overheads = kind.profile->overheads;
    const double of_a_rank = bytes * share_of_a_rank(bytes, kind.shape.gpus(), kinds_[to.kind].shape.gpus());
    out_.message_bytes = std::max(out_.message_bytes, of_a_rank);
    return overheads.message_start_s + overheads.message_slowdown * link.time_s(of_a_rank, senders);
  }

  // Calls visit(node, class of ranks) for each group of GPUs.
  template <typename Visit>
  void for_each_rank(const Visit& visit) const {
    for (int j = 0; j < plan_.pipelines(); ++j) {
      const CompactStage* stages = plan_.of(j).data();
      const int groups = static_cast<int>(plan_.groups(j));
      const int first =
          out_.pipelines[static_cast<size_t>(out_.of_pipeline[static_cast<size_t>(j)])].first_rank;
      for (int g = 0; g < groups; ++g) visit(stages[g].node, first + g);
    }
  }

  // Ranks by node; a node of its own for each that is not placed.
  void classify_nodes() {
    std::vector<uint64_t>&hash = memory_.hash, &hashes = memory_.hashes, &rank_hash = memory_.rank_hash;
    std::vector<int>&single = memory_.single, &class_of = memory_.class_of, &shown = memory_.shown;
    hash.assign(static_cast<size_t>(plan_.nodes), 0);
    class_of.resize(hash.size());
    hashes.clear();
    shown.clear();                                        // by class: the node that shows what it holds
    single.assign(static_cast<size_t>(out_.ranks()), 0);  // not placed, by class of ranks
    rank_hash.clear();
    for (int rank = 0; rank < out_.ranks(); ++rank) rank_hash.push_back(mixed(static_cast<uint64_t>(rank)));
    find_used_nodes();
    for_each_rank([&](int node, int rank) {
      if (node < 0)
        ++single[static_cast<size_t>(rank)];
      else
        hash[static_cast<size_t>(node)] += rank_hash[static_cast<size_t>(rank)];
    });
    size_t count = 0, at = 0;
    for (const int used : memory_.used) {
      const auto node = static_cast<size_t>(used);
      // Neighbours are mostly alike.
      if (count == 0 || hashes[at] != hash[node])
        at = static_cast<size_t>(std::find(hashes.begin(), hashes.end(), hash[node]) - hashes.begin());
      if (at == count) {
        hashes.push_back(hash[node]);
        shown.push_back(used);
        NodeClass& added = next_of(out_.nodes, count);
        added.ranks.clear();
        added.nodes = 0;
      }
      class_of[node] = static_cast<int>(at);
      ++out_.nodes[at].nodes;
    }
    for_each_rank([&](int node, int rank) {
      if (node < 0) return;
      const auto of = static_cast<size_t>(class_of[static_cast<size_t>(node)]);
      if (shown[of] != node) return;
      auto& ranks = out_.nodes[of].ranks;
      if (ranks.empty() || ranks.back().first != rank)
        ranks.emplace_back(rank, 1);
      else
        ++ranks.back().second;
    });
    for (size_t n = 0; n < count; ++n) join_equal(out_.nodes[n].ranks);
    for (size_t rank = 0; rank < single.size(); ++rank)
      if (single[rank] > 0) {
        NodeClass& added = next_of(out_.nodes, count);
        added.ranks.assign(1, {static_cast<int>(rank), 1});
        added.nodes = single[rank];
      }
    out_.nodes.resize(count);
    out_.nodes_of_rank.resize(static_cast<size_t>(out_.ranks()));
    for (auto& nodes : out_.nodes_of_rank) nodes.clear();
    for (size_t n = 0; n < count; ++n)
      for (const auto& [rank, held] : out_.nodes[n].ranks)
        out_.nodes_of_rank[static_cast<size_t>(rank)].emplace_back(static_cast<int>(n), held);
    const int node = plan_.stages.front().node;
    out_.first_is_placed = node >= 0;
    out_.first_node = node >= 0 ? class_of[static_cast<size_t>(node)] : 0;
  }

  // The nodes with ranks, ascending.
  void find_used_nodes() {
    std::vector<int>& used = memory_.used;
    memory_.is_used.assign(static_cast<size_t>(plan_.nodes), 0);
    used.clear();
    for (const CompactStage& stage : plan_.stages) {
      if (stage.node < 0) continue;
      char& is_used = memory_.is_used[static_cast<size_t>(stage.node)];
      if (!is_used) used.push_back(stage.node);
      is_used = 1;
    }
    if (!std::is_sorted(used.begin(), used.end())) std::sort(used.begin(), used.end());
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
  PlanClasses& out_;
  PlanClasses::Memory& memory_;
};

}  // namespace

void find_classes(const CompactPlan& plan, StageKinds& kinds, PlanClasses& out) {
  Classifier(plan, kinds, out).run();
}

size_t rank_with(const LayerGroup& layers, const CompactPlan& plan, const PlanClasses& classes, size_t c) {
  const PipelineClass& of = classes.pipelines[c];
  return static_cast<size_t>(of.first_rank) +
         static_cast<size_t>(layers.stage_of[c]) % plan.groups(of.pipeline);
}

void find_layer_groups(const CompactPlan& plan, const PlanClasses& classes, std::vector<LayerGroup>& out) {
  std::vector<int> cuts;
  for (const PipelineClass& of : classes.pipelines) {
    cuts.push_back(0);
    for (const CompactStage& stage : plan.of(of.pipeline)) cuts.push_back(stage.end_layer);
  }
  // Those of one class are in order.
  if (classes.pipelines.size() > 1) {
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  }
  std::vector<int> stage_of(classes.pipelines.size(), 0);
  size_t count = 0;
  for (size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
    for (size_t c = 0; c < stage_of.size(); ++c) {
      const auto stages = plan.of(classes.pipelines[c].pipeline);
      while (stages[static_cast<size_t>(stage_of[c])].end_layer <= cuts[cut]) ++stage_of[c];
    }
    LayerGroup& group = next_of(out, count);
    group.first_layer = cuts[cut];
    group.end_layer = cuts[cut + 1];
    group.stage_of.assign(stage_of.begin(), stage_of.end());
  }
  out.resize(count);
}

}  // namespace sailor::native
