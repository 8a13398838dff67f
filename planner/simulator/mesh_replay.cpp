#include "planner/simulator/mesh_replay.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace sailor::native {
namespace {

// The last one takes bucket by bucket.
constexpr double kTempos[] = {0, 0.25, 0.5, 0.75, 1, 1.5, 2, 1e4};

// One phase of the sum of one bucket.
struct Phase {
  int64_t step;
  size_t bucket;
  int phase;
};

struct Arrival {
  int node;
  double at_s, card_s;
};

class Replay {
 public:
  Replay(const Plan& plan, const std::vector<LayerGroup>& groups, const MeshSums& sums,
         const std::vector<std::vector<LastBackward>>& last_backwards,
         const std::vector<std::vector<double>>& done_s, MeshOptions options)
      : buckets_(sums.buckets), phases_(options.sharded ? 1 : 2), nodes_(static_cast<size_t>(sums.nodes)) {
    for (const auto& of_pipeline : done_s) {
      first_rank_.push_back(done_s_.size());
      done_s_.insert(done_s_.end(), of_pipeline.begin(), of_pipeline.end());
    }
    processor_s_.assign(done_s_.size(), 0);
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t j = 0; j < done_s.size(); ++j)
        processor_s_[rank(j, static_cast<size_t>(groups[g].stage_of[j]) % done_s[j].size())] +=
            sums.processor_s[g] / (options.sharded ? 2 : 1);
    for (const MeshSums::Bucket& bucket : buckets_) {
      const std::vector<int>& stage_of = groups[bucket.group].stage_of;
      for (size_t j = 0; j < done_s.size(); ++j) {
        const auto stage = static_cast<size_t>(stage_of[j]);
        const size_t gpus = stage % done_s[j].size();
        rank_of_.push_back(first_rank_[j] + gpus);
        ready_s_.push_back(options.overlapped ? finished_s(last_backwards[j][stage], bucket.first_layer,
                                                           plan.pipelines[j].stages[stage].first_layer)
                                              : done_s[j][gpus]);
      }
    }
    number_levels();
  }

  struct Ends {
    double last_s = std::numeric_limits<double>::infinity();
    std::vector<double> rank_s, begin_s, bucket_s;  // by rank; by bucket: first and last phase
  };

  Ends best() const {
    Ends best;
    for (const double tempo : kTempos) {
      Ends ends = play(tempo);
      if (ends.last_s < best.last_s) best = std::move(ends);
      if (!shares_cards_) break;  // the order does not matter
    }
    return best;
  }

  size_t rank(size_t pipeline, size_t gpus) const { return first_rank_[pipeline] + gpus; }

 private:
  // When one stage has finished the backward of a layer, and with it all layers above.
  static double finished_s(const LastBackward& last, int layer, int first_layer) {
    double below_s = 0;
    for (int i = first_layer; i < layer; ++i)
      below_s += last.layers_s.at(static_cast<size_t>(i - first_layer));
    return last.end_s - below_s;
  }

  size_t at(size_t bucket, size_t member) const { return bucket * first_rank_.size() + member; }

  void number_levels() {
    constexpr size_t kNobody = std::numeric_limits<size_t>::max();
    std::vector<int> levels(done_s_.size(), 0);
    std::vector<size_t> sender(nodes_, kNobody);
    for (size_t b = 0; b < buckets_.size(); ++b) {
      int level = 0;
      for (size_t m = 0; m < first_rank_.size(); ++m) level = std::max(level, levels[rank_of_[at(b, m)]]);
      level_.push_back(level);
      for (size_t m = 0; m < first_rank_.size(); ++m) {
        const size_t rank = rank_of_[at(b, m)];
        levels[rank] = level + 1;
        if (!(buckets_[b].members[m].card_s > 0)) continue;
        size_t& of_node = sender[static_cast<size_t>(buckets_[b].members[m].node)];
        shares_cards_ = shares_cards_ || (of_node != kNobody && of_node != rank);
        of_node = rank;
      }
    }
  }

  std::vector<Phase> steps(double tempo) const {
    std::vector<Phase> order;
    for (size_t b = 0; b < buckets_.size(); ++b)
      for (int phase = 0; phase < phases_; ++phase)
        order.push_back(
            {2 * static_cast<int64_t>(std::floor(2 * level_[b] + phase + tempo * static_cast<double>(b))) +
                 phase,
             b, phase});
    std::stable_sort(order.begin(), order.end(),
                     [](const Phase& a, const Phase& b) { return a.step < b.step; });
    return order;
  }

  Ends play(double tempo) const {
    Ends ends;
    ends.rank_s.assign(done_s_.size(), 0);
    ends.begin_s.assign(buckets_.size(), 0);
    ends.bucket_s.assign(buckets_.size(), 0);
    std::vector<double> card_s(nodes_, 0);  // when it is free
    std::vector<Arrival> arrivals;
    const std::vector<Phase> order = steps(tempo);
    const auto start_s = [&](const Phase& p, size_t m) {
      const size_t i = at(p.bucket, m);
      return p.phase > 0 ? ends.bucket_s[p.bucket] : std::max(ends.rank_s[rank_of_[i]], ready_s_[i]);
    };
    for (size_t first = 0, end = 0; first < order.size(); first = end) {
      while (end < order.size() && order[end].step == order[first].step) ++end;
      const std::span<const Phase> step(order.data() + first, end - first);
      arrivals.clear();
      for (const Phase& p : step)
        for (size_t m = 0; m < first_rank_.size(); ++m)
          if (const MeshSums::Member& member = buckets_[p.bucket].members[m]; member.card_s > 0)
            arrivals.push_back({member.node, start_s(p, m), member.card_s});
      // Who has a card alone comes one after the other.
      if (shares_cards_)
        std::sort(arrivals.begin(), arrivals.end(),
                  [](const Arrival& a, const Arrival& b) { return a.at_s < b.at_s; });
      for (const Arrival& a : arrivals) {
        double& free_s = card_s[static_cast<size_t>(a.node)];
        free_s = std::max(free_s, a.at_s) + a.card_s;
      }
      for (const Phase& p : step) finish(p, start_s, card_s, ends);
    }
    ends.last_s = 0;
    for (size_t r = 0; r < done_s_.size(); ++r) {
      ends.rank_s[r] = std::max(ends.rank_s[r], done_s_[r]) + processor_s_[r];
      ends.last_s = std::max(ends.last_s, ends.rank_s[r]);
    }
    return ends;
  }

  template <class Start>
  void finish(const Phase& p, const Start& start_s, const std::vector<double>& card_s, Ends& ends) const {
    const MeshSums::Bucket& bucket = buckets_[p.bucket];
    double begin_s = 0, end_s = 0;
    for (size_t m = 0; m < bucket.members.size(); ++m) {
      const MeshSums::Member& member = bucket.members[m];
      begin_s = std::max(begin_s, start_s(p, m));
      end_s = std::max(end_s, start_s(p, m) + member.port_s);
      if (member.card_s > 0) end_s = std::max(end_s, card_s[static_cast<size_t>(member.node)]);
    }
    end_s += bucket.latency_s;
    if (p.phase == 0) ends.begin_s[p.bucket] = begin_s;
    ends.bucket_s[p.bucket] = end_s;
    if (p.phase + 1 < phases_) return;
    for (size_t m = 0; m < bucket.members.size(); ++m) ends.rank_s[rank_of_[at(p.bucket, m)]] = end_s;
  }

  const std::vector<MeshSums::Bucket>& buckets_;
  const int phases_;
  const size_t nodes_;
  std::vector<size_t> first_rank_;            // by pipeline; what is a rank here is a group of GPUs
  std::vector<double> done_s_, processor_s_;  // by rank
  std::vector<size_t> rank_of_;               // [bucket][pipeline]
  std::vector<double> ready_s_;               // [bucket][pipeline]
  std::vector<int> level_;                    // by bucket
  bool shares_cards_ = false;
};

}  // namespace

MeshEnds replay_mesh(const Plan& plan, const std::vector<LayerGroup>& groups, const MeshSums& sums,
                     const std::vector<std::vector<LastBackward>>& last_backwards,
                     const std::vector<std::vector<double>>& done_s, MeshOptions options) {
  const Replay replay(plan, groups, sums, last_backwards, done_s, options);
  const Replay::Ends ends = replay.best();
  MeshEnds out;
  for (size_t j = 0; j < done_s.size(); ++j) {
    out.end_s.emplace_back();
    for (size_t i = 0; i < done_s[j].size(); ++i) out.end_s[j].push_back(ends.rank_s[replay.rank(j, i)]);
  }
  out.of_group_s.assign(groups.size(), 0);
  for (size_t b = 0; b < sums.buckets.size(); ++b) {
    const size_t g = sums.buckets[b].group;
    double backward_s = 0;
    for (size_t j = 0; j < done_s.size(); ++j)
      backward_s = std::max(backward_s, last_backwards[j][static_cast<size_t>(groups[g].stage_of[j])].end_s);
    out.of_group_s[g] += std::max(0.0, ends.bucket_s[b] - std::max(ends.begin_s[b], backward_s));
  }
  for (size_t g = 0; g < groups.size(); ++g)
    out.of_group_s[g] += sums.processor_s[g] / (options.sharded ? 2 : 1);
  return out;
}

}  // namespace sailor::native
