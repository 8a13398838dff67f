#include "planner/simulator/mesh_sync.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <numeric>
#include <utility>

namespace sailor::native {
namespace {

// Larger groups gather small messages at one rank and hand the result out.
constexpr int kFewRanks = 4;
constexpr double kMany = 1e6;  // senders: only the node's rate matters

double transfer_s(const LinkCurve& link, double bytes, double senders) {
  return std::max(0.0, link.time_s(bytes, senders) - link.latency_s());
}

// What one sum needs.
struct Needs {
  explicit Needs(std::pmr::memory_resource* memory)
      : port_s(memory), card_s(memory), card_first_s(memory), copies_port_s(memory), copies_card_s(memory) {}

  std::pmr::vector<double> port_s, card_s, card_first_s;  // of one phase, by member
  // Of both phases of hybrid ZeRO's sums over copies, by member; empty without.
  std::pmr::vector<double> copies_port_s, copies_card_s;
  double copies_latency_s = 0, copies_processor_s = 0;
  double later_s = 0;      // of the phase of parts
  double latency_s = 0;    // of one phase
  double processor_s = 0;  // of the whole sum
};

// The holders of a group of layers; of one after the other, with the same memory.
class Sum {
 public:
  Sum(const CompactPlan& plan, const PlanClasses& classes, StageKinds& kinds,
      std::pmr::memory_resource* memory)
      : plan_(plan),
        classes_(classes),
        table_(kinds),
        context_(kinds.context()),
        kinds_(memory),
        zero_groups_(memory),
        counts_(memory),
        members_(memory),
        of_member_(memory),
        here_(memory),
        links_(memory),
        port_s_(memory),
        card_s_(memory),
        card_of_node_s_(memory),
        first_of_node_s_(memory) {}

  void set(const LayerGroup& group) {
    group_ = &group;
    kinds_.clear();
    zero_groups_.clear();
    counts_.clear();
    members_.clear();
    of_member_.clear();
    replicas_ = latency_s_ = 0;
    for (size_t c = 0; c < classes_.pipelines.size(); ++c) {
      const PipelineClass& pipelines = classes_.pipelines[c];
      const auto stages = plan_.of(pipelines.pipeline);
      const auto stage = static_cast<size_t>(group.stage_of[c]);
      const size_t kind = number_of(stages[stage].kind, zero_group_of(plan_, pipelines.pipeline));
      // Each copy of the weights counts as a replica.
      const int copies = table_.shape(stages[stage].kind).copies();
      counts_[kind] += pipelines.count * copies;
      replicas_ += pipelines.count * copies;
      const size_t rank = static_cast<size_t>(pipelines.first_rank) +
                          stage % (stages.size() / static_cast<size_t>(plan_.interleave));
      for (const auto& [node, count] : classes_.nodes_of_rank[rank]) {
        MeshSums::Member& member = members_.emplace_back();
        member.rank = static_cast<int>(rank);
        member.node = node;
        member.count = count * copies;
        of_member_.push_back(kind);
      }
    }
    replicas_ /= num_zero_groups(plan_);  // each has as many
    here_.assign(classes_.nodes.size() * kinds_.size(), 0);
    for (size_t m = 0; m < members_.size(); ++m)
      here_[static_cast<size_t>(members_[m].node) * kinds_.size() + of_member_[m]] += members_[m].count;
    shares_ = 1;
    fewest_parts_ = std::numeric_limits<int>::max();
    for (const int kind : kinds_) {
      const int parts = table_.shape(kind).parts();
      shares_ = std::lcm(shares_, parts);
      fewest_parts_ = std::min(fewest_parts_, parts);
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      const int parts = table_.shape(kinds_[of_member_[m]]).parts();
      members_[m].turns = static_cast<double>(parts) / fewest_parts_;
      members_[m].first = static_cast<double>(parts) / shares_;
    }
    links_.assign(2 * kinds_.size() * kinds_.size(), nullptr);
    for (size_t m = 0; m < members_.size(); ++m)
      for (size_t to = 0; to < kinds_.size(); ++to)
        for (const bool near : {false, true})
          if (others(m, to, near) > 0) find_link(of_member_[m], to, near);
  }

  const std::pmr::vector<MeshSums::Member>& members() const { return members_; }

  // Of the ranks that hold the layers, how many shares a tensor falls into for them to sum the same ones.
  int shares() const { return shares_; }

  // `whole_bytes`: of the layers, over all GPUs of a replica.
  void needs(double whole_bytes, Needs& out) {
    const size_t count = kinds_.size();
    port_s_.assign(links_.size(), 0);
    card_s_.assign(count * count, 0);
    out.port_s.clear();
    out.card_s.clear();
    out.card_first_s.assign(members_.size(), 0);
    out.processor_s = out.latency_s = out.later_s = out.copies_latency_s = out.copies_processor_s = 0;
    out.copies_port_s.clear();
    out.copies_card_s.clear();
    if (replicas_ < 2) {
      out.port_s.assign(members_.size(), 0);
      out.card_s.assign(members_.size(), 0);
      return;
    }
    const double message = whole_bytes / shares_ / replicas_;
    for (size_t from = 0; from < count; ++from) {
      const StageKind& kind = table_[kinds_[from]];
      const int messages = shares_ / kind.shape.parts();  // to one replica
      out.processor_s = std::max(out.processor_s,
                                 whole_bytes / kind.shape.parts() * kind.profile->overheads.sync_s_per_byte);
      for (size_t to = 0; to < count; ++to) {
        for (const bool near : {false, true})
          if (const LinkCurve* link = links_[at(from, to, near)]; link != nullptr)
            port_s_[at(from, to, near)] = messages * transfer_s(*link, message, 1);
        if (const LinkCurve* link = links_[at(from, to, false)]; link != nullptr)
          card_s_[from * count + to] =
              kind.shape.parts() * messages * transfer_s(*link, message, kMany) / kMany;
      }
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      double near_s = 0, far_s = 0, cards_s = 0;
      const size_t from = of_member_[m];
      for (size_t to = 0; to < count; ++to) {
        const int far = others(m, to, false);
        near_s += others(m, to, true) * port_s_[at(from, to, true)];
        far_s += far * port_s_[at(from, to, false)];
        cards_s += far * card_s_[from * count + to];
      }
      out.port_s.push_back(std::max(near_s, far_s));
      out.card_s.push_back(cards_s);
    }
    if (shares_ > fewest_parts_) add_later_turns(out);
    const double pieces = std::max(
        1.0, std::ceil(whole_bytes / shares_ / static_cast<double>(context_.framework.sync_bucket_bytes)));
    out.latency_s = shares_ / fewest_parts_ * pieces * latency_s_;
    if (plan_.zero_group > 0) add_copies_work(whole_bytes, pieces, out);
  }

  struct Alone {
    double parts_s = 0, sums_s = 0;  // of the phases, without the processors' work
  };
  // A sum by itself, which all ranks begin together, in buckets that are this part of it: the first of them
  // waits for the first share.
  Alone alone(const Needs& needs, double bucket_part) {
    double first_s = 0;
    Alone out;
    card_of_node_s_.assign(classes_.nodes.size(), 0);
    for (size_t m = 0; m < members_.size(); ++m) {
      double& card_s = card_of_node_s_[static_cast<size_t>(members_[m].node)];
      card_s += members_[m].count * needs.card_s[m];
      first_s = std::max({first_s, needs.port_s[m] * members_[m].first, needs.card_first_s[m]});
      out.parts_s = std::max({out.parts_s, needs.port_s[m], card_s});
      out.sums_s = std::max({out.sums_s, needs.port_s[m] * members_[m].turns, card_s});
    }
    out.parts_s += bucket_part * std::max(0.0, first_s + needs.later_s - out.parts_s) + needs.latency_s;
    out.sums_s += needs.latency_s;
    return out;
  }

 private:
  size_t number_of(int kind, int zero_group) {
    for (size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == kind && zero_groups_[i] == zero_group) return i;
    kinds_.push_back(kind);
    zero_groups_.push_back(zero_group);
    counts_.push_back(0);
    return kinds_.size() - 1;
  }
  // A rank sends its own block, in two phases, to those with the same place in the other groups of pipelines:
  // a pipeline of each class shows where they are.
  void add_copies_work(double whole_bytes, double pieces, Needs& out) {
    const int copies = num_zero_groups(plan_);
    const double own = whole_bytes / replicas_;  // of all GPUs of a replica
    double latency_s = 0;
    for (size_t m = 0; m < members_.size(); ++m) {
      const auto c = static_cast<size_t>(classes_.pipeline_of_rank[static_cast<size_t>(members_[m].rank)]);
      const int pipeline = classes_.pipelines[c].pipeline;
      const CompactStage& from = stage_of(pipeline);
      const double parts = table_.shape(from.kind).parts(), message = own / parts / copies;
      double near_s = 0, far_s = 0, card_s = 0;
      for (int j = pipeline % plan_.zero_group; j < plan_.pipelines(); j += plan_.zero_group) {
        if (j == pipeline) continue;
        const CompactStage& to = stage_of(j);
        const bool near = on_one_node(from, to);
        const LinkCurve& link = table_.link(from.kind, to.kind, near);
        (near ? near_s : far_s) += transfer_s(link, message, 1);
        if (!near) card_s += parts * transfer_s(link, message, kMany) / kMany;
        latency_s = std::max(latency_s, link.latency_s());
      }
      out.copies_port_s.push_back(2 * std::max(near_s, far_s));
      out.copies_card_s.push_back(2 * card_s);
      out.copies_processor_s = std::max(out.copies_processor_s,
                                        own / parts * table_[from.kind].profile->overheads.sync_s_per_byte);
    }
    out.copies_latency_s = 2 * pieces * latency_s;
  }
  const CompactStage& stage_of(int pipeline) const {
    const auto of_class = static_cast<size_t>(classes_.of_pipeline[static_cast<size_t>(pipeline)]);
    return plan_.of(pipeline)[static_cast<size_t>(group_->stage_of[of_class])];
  }

  // The parts of each share but a rank's first are sent in the share's turn.
  void add_later_turns(Needs& out) {
    card_of_node_s_.assign(classes_.nodes.size(), 0);
    first_of_node_s_.assign(classes_.nodes.size(), 0);
    for (size_t m = 0; m < members_.size(); ++m) {
      const MeshSums::Member& member = members_[m];
      const auto node = static_cast<size_t>(member.node);
      card_of_node_s_[node] += member.count * out.card_s[m];
      first_of_node_s_[node] += member.count * out.card_s[m] * member.first;
      out.later_s = std::max(out.later_s, out.port_s[m] * member.turns * (1 - member.first));
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      const auto node = static_cast<size_t>(members_[m].node);
      out.card_first_s[m] = first_of_node_s_[node];
      out.later_s = std::max(out.later_s, card_of_node_s_[node] - first_of_node_s_[node]);
    }
  }
  size_t at(size_t from, size_t to, bool near) const {
    return (from * kinds_.size() + to) * 2 + (near ? 1 : 0);
  }

  // Holders of the kind `to` that one of the member sends to on its own node, or on others.
  int others(size_t member, size_t to, bool near) const {
    if (zero_groups_[of_member_[member]] != zero_groups_[to]) return 0;
    const int here = here_[static_cast<size_t>(members_[member].node) * kinds_.size() + to];
    return near ? here - (to == of_member_[member] ? 1 : 0) : counts_[to] - here;
  }

  void find_link(size_t from, size_t to, bool near) {
    const LinkCurve*& link = links_[at(from, to, near)];
    if (link != nullptr) return;
    link = &table_.link(kinds_[from], kinds_[to], near);
    latency_s_ = std::max(latency_s_, link->latency_s());
  }

  const CompactPlan& plan_;
  const PlanClasses& classes_;
  StageKinds& table_;
  const PlanningContext& context_;
  const LayerGroup* group_ = nullptr;
  // Of the holders: kind in the table, group of pipelines that share states, how many.
  std::pmr::vector<int> kinds_, zero_groups_, counts_;
  std::pmr::vector<MeshSums::Member> members_;  // without what they need
  std::pmr::vector<size_t> of_member_;          // kind, by member
  double replicas_ = 0;
  int shares_ = 1, fewest_parts_ = 1;
  std::pmr::vector<int> here_;                // [class of nodes][kind]: on one node
  std::pmr::vector<const LinkCurve*> links_;  // [kind][kind][near]; nullptr if unused
  double latency_s_ = 0;
  std::pmr::vector<double> port_s_, card_s_;  // to one replica: [kind][kind][near], [kind][kind]
  std::pmr::vector<double> card_of_node_s_, first_of_node_s_;
};

// Hybrid ZeRO's sums over copies, of one bucket after the other.
class CopiesSums {
 public:
  explicit CopiesSums(const PlanClasses& classes) : classes_(classes) {}

  // With each bucket, or `after` all of them. The bucket's members are there already.
  void add(const Needs& needs, bool after, MeshSums::Bucket& bucket, MeshSums& sums) {
    if (!after) bucket.latency_s += needs.copies_latency_s;
    for (size_t m = 0; m < needs.copies_port_s.size(); ++m) {
      MeshSums::Member& member = sums.of(bucket)[m];
      if (!after) {
        member.port_s += needs.copies_port_s[m];
        member.card_s += needs.copies_card_s[m];
        continue;
      }
      sums.copies_s.resize(static_cast<size_t>(classes_.ranks()), 0);
      card_s_.resize(classes_.nodes.size(), 0);
      card_s_[static_cast<size_t>(member.node)] += member.count * needs.copies_card_s[m];
      if (m == 0 || sums.of(bucket)[m - 1].rank != member.rank)  // otherwise on nodes of another class
        sums.copies_s[static_cast<size_t>(member.rank)] +=
            needs.copies_port_s[m] + needs.copies_latency_s + needs.copies_processor_s;
    }
  }

  void finish(MeshSums& sums) const {
    for (size_t rank = 0; rank < sums.copies_s.size(); ++rank)
      for (const auto& [node, count] : classes_.nodes_of_rank[rank])
        sums.copies_s[rank] = std::max(sums.copies_s[rank], card_s_[static_cast<size_t>(node)]);
  }

 private:
  const PlanClasses& classes_;
  std::vector<double> card_s_;  // by class of nodes
};

// The longest way of a small message to the plan's first stage.
double tally_latency_s(const CompactPlan& plan, const PlanClasses& classes, StageKinds& kinds) {
  double latency_s = 0;
  const int first = plan.stages.front().kind;
  const auto look = [&](int kind, bool near) {
    if (const LinkCurve* link = kinds.find_link(kind, first, near); link != nullptr)
      latency_s = std::max(latency_s, link->latency_s());
  };
  for (int rank = 0; rank < classes.ranks(); ++rank) {
    const PipelineClass& of =
        classes.pipelines[static_cast<size_t>(classes.pipeline_of_rank[static_cast<size_t>(rank)])];
    const int kind = plan.of(of.pipeline)[static_cast<size_t>(rank - of.first_rank)].kind;
    int near = 0;
    if (classes.first_is_placed)
      for (const auto& [held, count] : classes.nodes[static_cast<size_t>(classes.first_node)].ranks)
        if (held == rank) near = count;
    const bool is_first = rank == 0;  // the first stage itself is of class 0
    const int far = of.count - near - (is_first && !classes.first_is_placed ? 1 : 0);
    if (near - (is_first && classes.first_is_placed ? 1 : 0) > 0) look(kind, true);
    if (far > 0) look(kind, false);
  }
  return latency_s;
}

int num_ranks(const CompactPlan& plan, const StageKinds& kinds) {
  int ranks = 0;
  for (const CompactStage& stage : plan.stages) ranks += kinds.shape(stage.kind).gpus();
  return ranks / plan.interleave;
}

}  // namespace

void find_mesh_sums(const CompactPlan& plan, const PlanClasses& classes,
                    const std::vector<LayerGroup>& groups, StageKinds& kinds, MeshSums& sums) {
  const PlanningContext& context = kinds.context();
  sums.buckets.clear();
  sums.members.clear();
  sums.copies_s.clear();
  sums.tally_s = 0;
  for (std::vector<double>* of_group : {&sums.alone_s, &sums.processor_s, &sums.gather_s})
    of_group->assign(groups.size(), 0);
  const int ranks = num_ranks(plan, kinds);
  if (ranks > 1) sums.tally_s = (ranks <= kFewRanks ? 1 : 2) * tally_latency_s(plan, classes, kinds);
  if (!has_replicas(plan, kinds)) return;
  const double element = context.framework.sync_bytes_at(context.precision);
  std::array<std::byte, 32 * 1024> stack;
  std::pmr::monotonic_buffer_resource memory(stack.data(), stack.size());
  Sum sum(plan, classes, kinds, &memory);
  CopiesSums copies(classes);
  Needs whole(&memory);
  std::pmr::vector<std::pair<double, Needs>> known(&memory);  // most buckets of a group are alike
  for (size_t g = groups.size(); g-- > 0;) {
    const LayerGroup& group = groups[g];
    const CompactStage& any = plan.of(0)[static_cast<size_t>(group.stage_of[0])];
    const auto bytes_of = [&](int first, int end) {
      return kinds.parameters(any.kind, first, end) * kinds.shape(any.kind).parts() * element;
    };
    sum.set(group);
    sum.needs(bytes_of(group.first_layer, group.end_layer), whole);
    const bool by_layer = std::max(plan.zero, context.framework.zero) >= Zero::gradients;
    const double enough =
        by_layer ? 0 : static_cast<double>(context.framework.sync_bucket_bytes) * sum.shares();
    const double group_bytes = bytes_of(group.first_layer, group.end_layer);
    const double bucket_bytes = by_layer ? group_bytes / (group.end_layer - group.first_layer) : enough;
    const Sum::Alone alone = sum.alone(whole, std::min(1.0, bucket_bytes / group_bytes));
    sums.alone_s[g] = alone.parts_s + alone.sums_s + whole.processor_s;
    sums.processor_s[g] = whole.processor_s;
    if (!by_layer) sums.processor_s[g] += 2 * whole.copies_processor_s;  // halved with the rest
    sums.gather_s[g] = alone.parts_s + whole.processor_s / 2;  // shares in turn, like the parts of sums

    size_t num_known = 0;
    for (int layer = group.end_layer; layer > group.first_layer;) {
      const int end = layer--;
      while (layer > group.first_layer && bytes_of(layer, end) < enough) --layer;
      const double bytes = bytes_of(layer, end);
      size_t at = 0;
      while (at < num_known && known[at].first != bytes) ++at;
      if (at == num_known) {
        if (++num_known > known.size()) known.emplace_back(bytes, Needs(&memory));
        known[at].first = bytes;
        sum.needs(bytes, known[at].second);
      }
      const Needs& needs = known[at].second;
      MeshSums::Bucket bucket{static_cast<int>(g),
                              layer,
                              needs.latency_s,
                              static_cast<uint32_t>(sums.members.size()),
                              static_cast<uint32_t>(sum.members().size()),
                              needs.later_s};
      sums.members.insert(sums.members.end(), sum.members().begin(), sum.members().end());
      for (size_t m = 0; m < bucket.num_members; ++m) {
        sums.of(bucket)[m].port_s = needs.port_s[m];
        sums.of(bucket)[m].card_s = needs.card_s[m];
        sums.of(bucket)[m].card_first_s = needs.card_first_s[m];
      }
      if (plan.zero_group > 0) copies.add(needs, by_layer, bucket, sums);
      sums.buckets.push_back(bucket);
    }
  }
  copies.finish(sums);
}

}  // namespace sailor::native
