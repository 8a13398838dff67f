#include "planner/simulator/mesh_sync.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

namespace sailor::native {
namespace {

// Larger groups gather small messages at one rank and hand the result out.
constexpr int kFewRanks = 4;
constexpr int kPhases = 2;     // parts, then sums
constexpr double kMany = 1e6;  // senders: only the node's rate matters

// Members of a group whose links are alike, wherever they are.
struct Class {
  const PlanStage* stage;
  int count = 0;
};

// Those of a class on one node: alike for the network.
struct Kind {
  size_t of_class;
  size_t node;  // in the list of the group's nodes
  int count = 0;
};

// A node by its name; a stage that is not placed yet has one of its own, by its place in the plan.
using NodeKey = std::pair<std::string_view, size_t>;

NodeKey node_of(const PlanStage& stage, size_t pipeline, int index) {
  constexpr size_t kMostStages = size_t{1} << 32;
  if (stage.node.empty()) return {{}, pipeline * kMostStages + static_cast<size_t>(index)};
  return {stage.node, 0};
}

struct Members {
  std::vector<Class> classes;
  std::vector<Kind> kinds;
  std::vector<NodeKey> nodes;
  std::vector<size_t> kind_of;  // by pipeline
};

// The class of a stage; there are few, and neighbours in the list are mostly of one.
size_t class_of(const PlanStage& stage, std::vector<Class>& classes) {
  for (size_t c = classes.size(); c-- > 0;) {
    const PlanStage& other = *classes[c].stage;
    if (stage.tp == other.tp && stage.gpu_type == other.gpu_type && stage.zone == other.zone) return c;
  }
  classes.push_back({&stage});
  return classes.size() - 1;
}

// The place of `key` in a list that `index` numbers in the order of first calls.
template <class Key>
size_t number_of(std::map<Key, size_t>& index, Key key) {
  const size_t next = index.size();
  return index.emplace(std::move(key), next).first->second;
}

Members members_of(const Plan& plan, const LayerGroup& group) {
  Members out;
  std::map<NodeKey, size_t> nodes;
  std::map<std::pair<size_t, size_t>, size_t> kinds;
  for (size_t j = 0; j < plan.pipelines.size(); ++j) {
    const int index = group.stage_of[j];
    const PlanStage& stage = plan.pipelines[j].stages[static_cast<size_t>(index)];
    const size_t of_class = class_of(stage, out.classes);
    ++out.classes[of_class].count;
    const NodeKey key = node_of(stage, j, index);
    const size_t node = number_of(nodes, key);
    if (node == out.nodes.size()) out.nodes.push_back(key);
    const size_t kind = number_of(kinds, {of_class, node});
    if (kind == out.kinds.size()) out.kinds.push_back({of_class, node});
    ++out.kinds[kind].count;
    out.kind_of.push_back(kind);
  }
  return out;
}

double transfer_s(const LinkCurve& link, double bytes, double senders) {
  return std::max(0.0, link.time_s(bytes, senders) - link.latency_s());
}

// What one sum needs, by kind of its members.
struct Needs {
  std::vector<double> port_s, card_s;  // of one phase
  double latency_s = 0;                // of one phase
  double processor_s = 0;              // of the whole sum
};

class Sum {
 public:
  Sum(const PlanningContext& context, const Members& members)
      : context_(context), members_(members), num_classes_(members.classes.size()) {
    here_.assign(members.nodes.size() * num_classes_, 0);
    for (const Kind& kind : members.kinds) here_[kind.node * num_classes_ + kind.of_class] += kind.count;
    for (const Class& of : members.classes) replicas_ += of.count;
    links_.assign(2 * num_classes_ * num_classes_, nullptr);
    for (const Kind& from : members.kinds)
      for (size_t to = 0; to < num_classes_; ++to)
        for (const bool near : {false, true})
          if (others(from, to, near) > 0) find_link(from.of_class, to, near);
  }

  // `whole_bytes`: of the layers, over all TP ranks of a replica.
  Needs needs(double whole_bytes) const {
    Needs out;
    double most_shard = 0;
    std::vector<double> port_s(links_.size(), 0), card_s(num_classes_ * num_classes_, 0);  // of one message
    for (size_t from = 0; from < num_classes_; ++from) {
      const PlanStage& stage = *members_.classes[from].stage;
      const double shard = whole_bytes / stage.tp, part = shard / replicas_;
      most_shard = std::max(most_shard, shard);
      out.processor_s =
          std::max(out.processor_s, shard * profile_of(context_, stage.gpu_type).overheads.sync_s_per_byte);
      for (size_t to = 0; to < num_classes_; ++to) {
        for (const bool near : {false, true})
          if (const LinkCurve* link = links_[at(from, to, near)]; link != nullptr)
            port_s[at(from, to, near)] = transfer_s(*link, part, 1);
        if (const LinkCurve* link = links_[at(from, to, false)]; link != nullptr)
          card_s[from * num_classes_ + to] = stage.tp * transfer_s(*link, part, kMany) / kMany;
      }
    }
    for (const Kind& kind : members_.kinds) {
      double near_s = 0, far_s = 0, cards_s = 0;
      for (size_t to = 0; to < num_classes_; ++to) {
        const int far = others(kind, to, false);
        near_s += others(kind, to, true) * port_s[at(kind.of_class, to, true)];
        far_s += far * port_s[at(kind.of_class, to, false)];
        cards_s += far * card_s[kind.of_class * num_classes_ + to];
      }
      out.port_s.push_back(std::max(near_s, far_s));
      out.card_s.push_back(cards_s);
    }
    const double pieces =
        std::max(1.0, std::ceil(most_shard / static_cast<double>(context_.framework.sync_bucket_bytes)));
    out.latency_s = pieces * latency_s_;
    return out;
  }

  // The time of a sum by itself.
  double alone_s(const Needs& needs) const {
    double slowest_s = 0;
    std::vector<double> cards_s(members_.nodes.size(), 0);
    for (size_t k = 0; k < members_.kinds.size(); ++k) {
      const Kind& kind = members_.kinds[k];
      cards_s[kind.node] += kind.count * needs.card_s[k];
      slowest_s = std::max({slowest_s, needs.port_s[k], cards_s[kind.node]});
    }
    return kPhases * (slowest_s + needs.latency_s) + needs.processor_s;
  }

 private:
  size_t at(size_t from, size_t to, bool near) const {
    return (from * num_classes_ + to) * 2 + (near ? 1 : 0);
  }

  // Members of the class `to` that one of the kind `from` sends to on its own node, or on others.
  int others(const Kind& from, size_t to, bool near) const {
    const int here = here_[from.node * num_classes_ + to];
    return near ? here - (to == from.of_class ? 1 : 0) : members_.classes[to].count - here;
  }

  void find_link(size_t from, size_t to, bool near) {
    const LinkCurve*& link = links_[at(from, to, near)];
    if (link != nullptr) return;
    const PlanStage &a = *members_.classes[from].stage, &b = *members_.classes[to].stage;
    link = &link_of(context_, link_end(a, a.tp), link_end(b, b.tp), near);
    latency_s_ = std::max(latency_s_, link->latency_s());
  }

  const PlanningContext& context_;
  const Members& members_;
  const size_t num_classes_;
  double replicas_ = 0;
  std::vector<int> here_;                // [node][class]
  std::vector<const LinkCurve*> links_;  // [class][class][near]; nullptr where nobody sends
  double latency_s_ = 0;
};

// Of the ranks that hold a group of layers, how many shares a tensor falls into for them to sum the same
// ones.
int shares_of(const Members& members) {
  int shares = 1;
  for (const Class& of : members.classes) shares = std::lcm(shares, of.stage->tp);
  return shares;
}

}  // namespace

MeshSums mesh_sums(const PlanningContext& context, const Plan& plan, const std::vector<LayerGroup>& groups) {
  MeshSums sums;
  sums.alone_s.assign(groups.size(), 0);
  sums.processor_s.assign(groups.size(), 0);
  double latency_s = 0;
  const PlanStage& first = plan.pipelines[0].stages[0];
  const PlanStage* before = nullptr;
  const auto linked_alike = [&](const PlanStage& a, const PlanStage& b) {
    return a.tp == b.tp && a.gpu_type == b.gpu_type && a.zone == b.zone &&
           on_one_node(a, first) == on_one_node(b, first);
  };
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      if (&stage == &first || (before != nullptr && linked_alike(stage, *before))) continue;
      before = &stage;
      const LinkCurve* link = find_link(context.profiles.network, link_end(stage, stage.tp),
                                        link_end(first, first.tp), on_one_node(stage, first));
      if (link != nullptr) latency_s = std::max(latency_s, link->latency_s());
    }
  const int ranks = num_ranks(plan);
  if (ranks > 1) sums.tally_s = (ranks <= kFewRanks ? 1 : 2) * latency_s;
  if (plan.pipelines.size() < 2) return sums;
  const double element = context.framework.sync_bytes_at(context.job.training.precision);
  std::map<NodeKey, int> nodes;
  for (size_t g = groups.size(); g-- > 0;) {
    const LayerGroup& group = groups[g];
    const PlanStage& any = plan.pipelines[0].stages[static_cast<size_t>(group.stage_of[0])];
    const std::vector<LayerSizes>& sizes = sizes_of(context, any.tp);
    const auto layer_bytes = [&](int layer) {
      return static_cast<double>(sizes.at(static_cast<size_t>(layer)).parameters) * any.tp * element;
    };
    const Members members = members_of(plan, group);
    const Sum sum(context, members);
    std::vector<int> node_of_group;
    for (const NodeKey& node : members.nodes)
      node_of_group.push_back(nodes.emplace(node, static_cast<int>(nodes.size())).first->second);
    double whole_bytes = 0;
    for (int layer = group.first_layer; layer < group.end_layer; ++layer) whole_bytes += layer_bytes(layer);
    const Needs whole = sum.needs(whole_bytes);
    sums.alone_s[g] = sum.alone_s(whole);
    sums.processor_s[g] = whole.processor_s;

    const double enough = static_cast<double>(context.framework.sync_bucket_bytes) * shares_of(members);
    std::map<double, Needs> known;  // most buckets are alike
    for (int layer = group.end_layer; layer > group.first_layer;) {
      double bytes = layer_bytes(--layer);
      while (layer > group.first_layer && bytes < enough) bytes += layer_bytes(--layer);
      const auto found = known.find(bytes);
      const Needs& needs =
          found != known.end() ? found->second : known.emplace(bytes, sum.needs(bytes)).first->second;
      MeshSums::Bucket bucket{g, layer, needs.latency_s, {}};
      for (const size_t kind : members.kind_of)
        bucket.members.push_back(
            {node_of_group[members.kinds[kind].node], needs.port_s[kind], needs.card_s[kind]});
      sums.buckets.push_back(std::move(bucket));
    }
  }
  sums.nodes = static_cast<int>(nodes.size());
  return sums;
}

}  // namespace sailor::native
