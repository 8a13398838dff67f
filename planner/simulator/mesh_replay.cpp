#include "planner/simulator/mesh_replay.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace sailor::native {
namespace {

// The last one takes bucket by bucket.
constexpr double kTempos[] = {0, 0.25, 0.5, 0.75, 1, 1.5, 2, 1e4};

// One phase of the sum of one bucket.
struct Phase {
  int64_t step;
  uint32_t bucket;
  int phase;
};

struct Arrival {
  int node;
  double at_s, card_s;
};

class Replay {
 public:
  Replay(const MeshSums& sums, const std::vector<double>& done_s, const std::vector<double>& processor_s,
         int nodes, bool sharded)
      : sums_(sums),
        buckets_(sums.buckets),
        done_s_(done_s),
        processor_s_(processor_s),
        phases_(sharded ? 1 : 2),
        nodes_(static_cast<size_t>(nodes)) {
    number_levels();
  }

  MeshEnds best(double most_s) {
    MeshEnds best, ends;
    best.last_s = most_s;
    bool any = false;
    const double least_s =
        shares_cards_ ? least_end_s(sums_, done_s_.size(), static_cast<int>(nodes_), phases_ == 1) : 0;
    std::vector<Phase> before;
    for (const double tempo : kTempos) {
      order_steps(tempo);
      if (!before.empty() && same_order(before)) continue;
      if (play(ends, best.last_s)) {
        std::swap(best, ends);
        any = true;
      }
      if (!shares_cards_ || best.last_s <= least_s) break;  // another order changes nothing
      before = order_;
    }
    if (!any) best.last_s = std::numeric_limits<double>::infinity();
    return best;
  }

 private:
  void number_levels() {
    constexpr int kNobody = -1, kSeveral = -2;
    std::vector<int> levels(done_s_.size(), 0);
    std::vector<int> sender(nodes_, kNobody);
    for (const MeshSums::Bucket& bucket : buckets_) {
      int level = 0;
      for (const MeshSums::Member& m : sums_.of(bucket))
        level = std::max(level, levels[static_cast<size_t>(m.rank)]);
      level_.push_back(level);
      for (const MeshSums::Member& m : sums_.of(bucket)) {
        levels[static_cast<size_t>(m.rank)] = level + 1;
        if (!(m.card_s > 0)) continue;
        int& of_node = sender[static_cast<size_t>(m.node)];
        if (m.count > 1 || (of_node != kNobody && of_node != m.rank)) of_node = kSeveral;
        shares_cards_ = shares_cards_ || of_node == kSeveral;
        if (of_node == kNobody) of_node = m.rank;
      }
    }
  }

  void order_steps(double tempo) {
    order_.clear();
    for (uint32_t b = 0; b < buckets_.size(); ++b)
      for (int phase = 0; phase < phases_; ++phase)
        order_.push_back(
            {2 * static_cast<int64_t>(std::floor(2 * level_[b] + phase + tempo * static_cast<double>(b))) +
                 phase,
             b, phase});
    std::stable_sort(order_.begin(), order_.end(),
                     [](const Phase& a, const Phase& b) { return a.step < b.step; });
  }

  // Do the steps take the same phases as those of another tempo did?
  bool same_order(const std::vector<Phase>& other) const {
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i].bucket != other[i].bucket || order_[i].phase != other[i].phase) return false;
      if (i > 0 && (order_[i].step == order_[i - 1].step) != (other[i].step == other[i - 1].step))
        return false;
    }
    return true;
  }

  double start_s(const Phase& p, const MeshSums::Member& m, const MeshEnds& ends) const {
    return p.phase > 0 ? ends.bucket_s[p.bucket]
                       : std::max(ends.rank_s[static_cast<size_t>(m.rank)], m.backward_end_s);
  }

  // Returns whether everything ends before `most_s`.
  bool play(MeshEnds& ends, double most_s) {
    ends.rank_s.assign(done_s_.size(), 0);
    ends.begin_s.assign(buckets_.size(), 0);
    ends.bucket_s.assign(buckets_.size(), 0);
    card_free_s_.assign(nodes_, 0);
    idle_s_.assign(done_s_.size(), 0);
    for (size_t first = 0, end = 0; first < order_.size(); first = end) {
      while (end < order_.size() && order_[end].step == order_[first].step) ++end;
      const std::span<const Phase> step(order_.data() + first, end - first);
      arrivals_.clear();
      for (const Phase& p : step)
        for (const MeshSums::Member& m : sums_.of(buckets_[p.bucket]))
          if (m.card_s > 0) arrivals_.push_back({m.node, start_s(p, m, ends), m.count * m.card_s});
      // Who has a card alone comes one after the other.
      if (shares_cards_ && arrivals_.size() > 1)
        std::sort(arrivals_.begin(), arrivals_.end(),
                  [](const Arrival& a, const Arrival& b) { return a.at_s < b.at_s; });
      for (const Arrival& a : arrivals_) {
        double& free_s = card_free_s_[static_cast<size_t>(a.node)];
        free_s = std::max(free_s, a.at_s) + a.card_s;
      }
      for (const Phase& p : step)
        if (finish(p, ends) >= most_s) return false;
    }
    ends.last_s = 0;
    for (size_t r = 0; r < done_s_.size(); ++r) {
      ends.rank_s[r] = std::max(ends.rank_s[r], done_s_[r]) + processor_s_[r];
      ends.last_s = std::max(ends.last_s, ends.rank_s[r]);
    }
    return ends.last_s < most_s;
  }

  double finish(const Phase& p, MeshEnds& ends) {
    const MeshSums::Bucket& bucket = buckets_[p.bucket];
    double begin_s = 0, end_s = 0;
    for (const MeshSums::Member& m : sums_.of(bucket)) {
      const double start = start_s(p, m, ends);
      begin_s = std::max(begin_s, start);
      end_s = std::max(end_s, start + m.port_s * (p.phase == 0 ? 1 : m.turns));
      if (m.card_s > 0) end_s = std::max(end_s, card_free_s_[static_cast<size_t>(m.node)]);
    }
    if (p.phase == 0 && bucket.later_s > 0)
      end_s = std::max(end_s, first_share_s(bucket, begin_s) + bucket.later_s);
    end_s += bucket.latency_s;
    const double sums_s = p.phase > 0 ? end_s - ends.bucket_s[p.bucket] : 0;
    if (p.phase == 0) ends.begin_s[p.bucket] = begin_s;
    ends.bucket_s[p.bucket] = end_s;
    if (p.phase + 1 < phases_) return end_s;
    for (const MeshSums::Member& m : sums_.of(bucket)) {
      ends.rank_s[static_cast<size_t>(m.rank)] = end_s;
      idle_s_[static_cast<size_t>(m.rank)] = end_s - idle_before_end_s(m, bucket.later_s, sums_s);
    }
    return end_s;
  }

  // When the parts of the first share have arrived. Ranks of a high degree that had the first turns of the
  // bucket before sent theirs during the others.
  double first_share_s(const MeshSums::Bucket& bucket, double begin_s) const {
    double end_s = begin_s;
    for (const MeshSums::Member& m : sums_.of(bucket)) {
      const double from_s = std::max(idle_s_[static_cast<size_t>(m.rank)], m.backward_end_s);
      end_s = std::max(end_s, from_s + std::max(m.port_s * m.first, m.card_first_s));
    }
    return end_s;
  }

  // From the last turn of the TP rank that has the first ones to the end of a bucket.
  static double idle_before_end_s(const MeshSums::Member& m, double later_s, double sums_s) {
    const double turns = m.turns / m.first, others = turns - 1 / m.first;
    return turns > 1 ? others / (turns - 1) * later_s + others / turns * sums_s : 0;
  }

  const MeshSums& sums_;
  const std::vector<MeshSums::Bucket>& buckets_;
  const std::vector<double>&done_s_, &processor_s_;  // by class of ranks
  const int phases_;
  const size_t nodes_;
  std::vector<int> level_;  // by bucket
  bool shares_cards_ = false;
  std::vector<Phase> order_;
  std::vector<double> card_free_s_;
  std::vector<double> idle_s_;  // by class of ranks: from when on one of the TP ranks has nothing to send
  std::vector<Arrival> arrivals_;
};

}  // namespace

MeshEnds replay_mesh(const MeshSums& sums, const std::vector<double>& done_s,
                     const std::vector<double>& processor_s, int nodes, bool sharded, double most_s) {
  return Replay(sums, done_s, processor_s, nodes, sharded).best(most_s);
}

double least_end_s(const MeshSums& sums, size_t ranks, int nodes, bool sharded) {
  const size_t count = ranks + static_cast<size_t>(nodes);
  std::vector<double> from_s(count, std::numeric_limits<double>::infinity()), busy_s(count, 0);
  const auto add = [&](size_t at, double start_s, double parts_s, double sums_s) {
    from_s[at] = std::min(from_s[at], start_s);
    busy_s[at] += parts_s + (sharded ? 0 : sums_s);
  };
  for (const MeshSums::Bucket& bucket : sums.buckets) {
    int before = -1;
    for (const MeshSums::Member& m : sums.of(bucket)) {
      const double card_s = m.count * m.card_s;
      if (card_s > 0) add(ranks + static_cast<size_t>(m.node), m.backward_end_s, card_s, card_s);
      // Ranks of a class are on nodes of several classes.
      if (m.rank != before)
        add(static_cast<size_t>(m.rank), m.backward_end_s, m.port_s + bucket.latency_s,
            m.port_s * m.turns + bucket.latency_s);
      before = m.rank;
    }
  }
  double least_s = 0;
  for (size_t i = 0; i < count; ++i)
    if (busy_s[i] > 0) least_s = std::max(least_s, from_s[i] + busy_s[i]);
  return least_s;
}

}  // namespace sailor::native
