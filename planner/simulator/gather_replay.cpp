#include "planner/simulator/gather_replay.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sailor::native {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLeast = 1e-12;  // of the time so far: what rounding leaves of a message

class GatherReplay {
 public:
  GatherReplay(const MeshSums& sums, const std::vector<double>& from_s, double part, int nodes)
      : sums_(sums),
        part_(part),
        ready_s_(from_s),
        next_(from_s.size(), 0),
        senders_(static_cast<size_t>(nodes), 0) {
    of_rank_.resize(from_s.size());
    for (size_t b = 0; b < sums.buckets.size(); ++b) {
      for (const MeshSums::Member& member : sums.of(sums.buckets[b])) {
        std::vector<size_t>& buckets = of_rank_[static_cast<size_t>(member.rank)];
        if (buckets.empty() || buckets.back() != b) buckets.push_back(b);
      }
      missing_.push_back(sums.buckets[b].num_members);
    }
    for (size_t rank = 0; rank < from_s.size(); ++rank) begin(rank);
  }

  std::vector<double> run() {
    while (!flows_.empty()) {
      std::fill(senders_.begin(), senders_.end(), 0);
      for (const Flow& flow : flows_)
        if (sends(flow)) senders_[static_cast<size_t>(flow.member->node)] += flow.member->count;
      double next_s = kNever;
      for (const Flow& flow : flows_) next_s = std::min(next_s, event_s(flow));
      for (Flow& flow : flows_)
        if (sends(flow)) flow.card_s -= (next_s - now_s_) * rate(flow);
      now_s_ = next_s;
      end_flows();
    }
    return ready_s_;
  }

 private:
  struct Flow {  // of the members of one bucket on one node, from a time on
    const MeshSums::Member* member;
    size_t bucket;
    double from_s, port_end_s, card_s;
  };

  bool is_left(const Flow& flow) const { return flow.card_s > kLeast * std::max(1.0, now_s_); }
  bool sends(const Flow& flow) const { return flow.from_s <= now_s_ && is_left(flow); }
  // Of a card's second per second.
  double rate(const Flow& flow) const {
    return flow.member->count / senders_[static_cast<size_t>(flow.member->node)];
  }
  double event_s(const Flow& flow) const {
    if (flow.from_s > now_s_) return flow.from_s;
    return is_left(flow) ? now_s_ + flow.card_s / rate(flow) : std::max(now_s_, flow.port_end_s);
  }

  void begin(size_t rank) {
    if (next_[rank] == of_rank_[rank].size()) return;
    const size_t bucket = of_rank_[rank][next_[rank]++];
    for (const MeshSums::Member& member : sums_.of(sums_.buckets[bucket]))
      if (static_cast<size_t>(member.rank) == rank)
        flows_.push_back({&member, bucket, ready_s_[rank], ready_s_[rank] + part_ * member.port_s,
                          part_ * member.count * member.card_s});
  }

  void end_flows() {
    ended_.clear();
    for (size_t i = 0; i < flows_.size();) {
      const Flow& flow = flows_[i];
      if (flow.from_s > now_s_ || is_left(flow) || flow.port_end_s > now_s_) {
        ++i;
        continue;
      }
      if (--missing_[flow.bucket] == 0) ended_.push_back(flow.bucket);
      flows_[i] = flows_.back();
      flows_.pop_back();
    }
    for (const size_t bucket : ended_) {
      const MeshSums::Bucket& of = sums_.buckets[bucket];
      int before = -1;
      for (const MeshSums::Member& member : sums_.of(of)) {
        if (member.rank == before) continue;  // on nodes of another class
        before = member.rank;
        ready_s_[static_cast<size_t>(member.rank)] = now_s_ + of.latency_s + part_ * of.later_s;
        begin(static_cast<size_t>(member.rank));
      }
    }
  }

  const MeshSums& sums_;
  double part_;
  double now_s_ = 0;
  std::vector<double> ready_s_;               // by class of ranks
  std::vector<size_t> next_;                  // likewise: of its buckets
  std::vector<std::vector<size_t>> of_rank_;  // likewise: its buckets
  std::vector<double> senders_;               // by class of nodes
  std::vector<uint32_t> missing_;             // by bucket: members that have not sent all
  std::vector<Flow> flows_;
  std::vector<size_t> ended_;
};

}  // namespace

std::vector<double> replay_gathers(const MeshSums& sums, const std::vector<double>& from_s, double part,
                                   int nodes) {
  return GatherReplay(sums, from_s, part, nodes).run();
}

}  // namespace sailor::native
