#include "planner/search/cut_search.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "planner/search/bounds.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1e-12;  // relative; absorbs rounding when equals are compared

// A partial pipeline: stages from some layer to the last.
struct Label {
  const Label* next = nullptr;  // the stages behind the leading one
  int first_layer = 0;
  int end_layer = 0;  // of the leading stage
  int mix = 0;        // of the leading stage
  int stages = 0;
  double bottleneck_s = 0;    // of all stages but the leading one
  double leading_s = 0;       // of the leading stage so far: what the stage before it adds is missing
  double last_message_s = 0;  // activation from the leading stage to the next
  double sum_s = 0;
  double update_s = 0;
  double sync_s = 0;
  double usd_per_s = 0;
  double transfer_usd = 0;
  bool dead = false;
  std::vector<int> used;
};

class CutSearch {
 public:
  CutSearch(const CutProblem& problem, const std::function<double()>& threshold,
            const std::function<void(Cut)>& found, const std::function<bool()>& expired)
      : p_(problem),
        costs_(problem.costs),
        threshold_(threshold),
        found_(found),
        expired_(expired),
        bound_(problem.costs, problem.resources),
        layers_(problem.costs.layers()),
        rounds_(problem.microbatches - 1),
        bottleneck_floor_(bound_.bottleneck_s(problem.replicas)),
        sync_floor_(bound_.sync_s(problem.replicas)),
        cost_matters_(problem.goal.objective == Objective::cost || std::isfinite(problem.goal.max_usd)) {
    const size_t n = problem.mixes.size();
    facing_.resize(n * n);
    facing_known_.assign(n * n, false);
    link_s_.resize(n * n);
    buckets_.resize((static_cast<size_t>(layers_) + 1) * n);
  }

  CutOutcome run() {
    Label root;
    root.first_layer = layers_;
    root.used.assign(p_.resources.capacity.size(), 0);
    extend(root);
    for (int layer = layers_ - 1; layer > 0 && outcome_.complete; --layer)
      for (size_t mix = 0; mix < p_.mixes.size() && outcome_.complete; ++mix)
        for (const Label* label : bucket(layer, static_cast<int>(mix))) {
          if (label->dead || hopeless(*label)) continue;
          extend(*label);
          if (!outcome_.complete) break;
        }
    return outcome_;
  }

 private:
  std::vector<Label*>& bucket(int layer, int mix) {
    return buckets_[static_cast<size_t>(layer) * p_.mixes.size() + mix];
  }

  double compute_s(const ReplicaMix& mix, int first, int end) const {
    double slowest = 0;
    for (const auto& run : mix.runs) slowest = std::max(slowest, costs_.compute_s(run.option, first, end));
    return slowest;
  }
  double update_s(const ReplicaMix& mix, int first, int end) const {
    double slowest = 0;
    for (const auto& run : mix.runs) slowest = std::max(slowest, costs_.update_s(run.option, first, end));
    return slowest;
  }
  bool fits(const ReplicaMix& mix, int first, int end, int in_flight) const {
    for (const auto& run : mix.runs)
      if (!costs_.fits(run.option, first, end, in_flight, p_.replicas > 1)) return false;
    return true;
  }
  double sync_s(const ReplicaMix& mix, int first, int end) const {
    double slowest = 0;
    if (p_.replicas > 1)
      for (const auto& [a, b] : mix.neighbours)
        slowest = std::max(slowest, costs_.sync_s(a, b, mix.smallest_tp, first, end, p_.replicas));
    return slowest;
  }
  double sync_usd(const ReplicaMix& mix, int first, int end) const {
    double usd = 0;
    if (p_.replicas > 1)
      for (const auto& [a, b] : mix.ring) usd += costs_.sync_usd(a, b, first, end, p_.replicas);
    return usd;
  }

  const std::vector<std::pair<int, int>>& facing(int upstream, int downstream) {
    const size_t at = static_cast<size_t>(upstream) * p_.mixes.size() + downstream;
    if (!facing_known_[at]) {
      facing_[at] = facing_pairs(p_.mixes[upstream], p_.mixes[downstream]);
      facing_known_[at] = true;
    }
    return facing_[at];
  }
  // (activation, gradient) over the boundary before `layer`, the slowest pair of replicas.
  std::pair<double, double> link_s(int upstream, int downstream, int layer) {
    const size_t pair = static_cast<size_t>(upstream) * p_.mixes.size() + downstream;
    if (link_s_[pair].empty()) link_s_[pair].assign(static_cast<size_t>(layers_) + 1, {-1, -1});
    auto& known = link_s_[pair][layer];
    if (known.first < 0) {
      known = {0, 0};
      for (const auto& [a, b] : facing(upstream, downstream)) {
        known.first = std::max(known.first, costs_.activation_s(a, b, layer));
        known.second = std::max(known.second, costs_.gradient_s(b, a, layer));
      }
    }
    return known;
  }
  double messages_usd(int upstream, int downstream, int layer) const {
    double usd = 0;
    const ReplicaMix &up = p_.mixes[upstream], &down = p_.mixes[downstream];
    if (up.runs.size() == 1 && down.runs.size() == 1)
      return p_.replicas * p_.microbatches *
             costs_.message_usd(up.runs[0].option, down.runs[0].option, layer);
    for (int j = 0; j < p_.replicas; ++j)
      usd += costs_.message_usd(up.option_of(j), down.option_of(j), layer);
    return usd * p_.microbatches;
  }

  bool worse_than_accepted(double iteration_s, double usd) {
    if (iteration_s > p_.goal.max_iteration_s) {
      outcome_.too_slow = true;
      return true;
    }
    if (usd > p_.goal.max_usd) {
      outcome_.over_budget = true;
      return true;
    }
    if (!p_.bounding) return false;
    return (p_.goal.objective == Objective::throughput ? iteration_s : usd) >= threshold_();
  }

  // Can no completion of the label be accepted?
  bool hopeless(const Label& label) {
    double bottleneck = std::max({label.bottleneck_s, label.leading_s, bottleneck_floor_});
    if (p_.bounding && label.first_layer > 0) {
      left_ = p_.resources.capacity;
      for (size_t c = 0; c < left_.size(); ++c) left_[c] -= label.used[c];
      bottleneck = std::max(bottleneck, bound_.bottleneck_s(p_.replicas, label.first_layer, left_));
      if (!std::isfinite(bottleneck)) return true;
      int in_flight = label.stages + 1;
      if (costs_.model() == CostModel::native)
        in_flight = std::min(in_flight, static_cast<int>(p_.microbatches));
      if (!bound_.memory_suffices(p_.replicas, label.first_layer, in_flight, left_)) {
        outcome_.out_of_memory = true;
        return true;
      }
    }
    const double iteration_s = p_.overhead_s + rounds_ * bottleneck + label.sum_s +
                               costs_.least_compute_s(0, label.first_layer) + label.update_s +
                               std::max(label.sync_s, sync_floor_);
    double usd = 0;
    if (cost_matters_)
      usd = label.transfer_usd + iteration_s * label.usd_per_s +
            p_.microbatches * p_.replicas * costs_.least_usd(0, label.first_layer);
    return worse_than_accepted(iteration_s, usd);
  }

  void extend(const Label& label) {
    const int end = label.first_layer;
    const int stages = label.stages + 1;
    for (size_t m = 0; m < p_.mixes.size(); ++m) {
      const ReplicaMix& mix = p_.mixes[m];
      Label next;
      next.used = label.used;
      bool enough = true;
      for (size_t c = 0; c < next.used.size(); ++c)
        enough = (next.used[c] += mix.use[c]) <= p_.resources.capacity[c] && enough;
      if (!enough) continue;
      next.next = label.stages > 0 ? &label : nullptr;
      next.mix = static_cast<int>(m);
      next.end_layer = end;
      next.stages = stages;
      next.usd_per_s = label.usd_per_s + mix.usd_per_s;
      double activation = 0, gradient = 0, messages = 0;
      if (label.stages > 0) {
        std::tie(activation, gradient) = link_s(next.mix, label.mix, end);
        if (!std::isfinite(activation) || !std::isfinite(gradient)) continue;
        if (cost_matters_) messages = messages_usd(next.mix, label.mix, end);
      }
      const int in_flight =
          costs_.model() == CostModel::native ? std::min(stages, static_cast<int>(p_.microbatches)) : stages;
      // The stage that was leading is now complete: its gradient message is known.
      if (costs_.model() == CostModel::published) {
        const double extra = (label.stages == 1 ? 2 : 1) * gradient;
        next.bottleneck_s = std::max(label.bottleneck_s, label.leading_s + extra);
        next.sum_s = label.sum_s + extra + activation;
      } else {
        next.bottleneck_s = std::max({label.bottleneck_s, label.leading_s, gradient});
        next.sum_s = label.sum_s + gradient + activation;
      }
      next.last_message_s = activation;
      const double base_sum = next.sum_s;
      for (int first = end - 1; first >= 0; --first) {
        if (++polls_ % 1024 == 0 && expired_()) {
          outcome_.complete = false;
          return;
        }
        if (!fits(mix, first, end, in_flight)) {
          outcome_.out_of_memory = true;
          break;
        }
        const double compute = compute_s(mix, first, end);
        next.first_layer = first;
        next.leading_s =
            costs_.model() == CostModel::published ? compute + activation : std::max(compute, activation);
        next.sum_s = base_sum + compute;
        const double at_least_s = rounds_ * std::max(next.bottleneck_s, next.leading_s) + next.sum_s +
                                  costs_.least_compute_s(0, first) + p_.overhead_s + sync_floor_;
        if (p_.bounding &&
            at_least_s > std::min(p_.goal.max_iteration_s,
                                  p_.goal.objective == Objective::throughput ? threshold_() : kNever)) {
          outcome_.too_slow = outcome_.too_slow || std::isfinite(p_.goal.max_iteration_s);
          break;
        }
        if (first > 0 && stages >= p_.max_stages) continue;
        next.update_s = std::max(label.update_s, update_s(mix, first, end));
        next.sync_s = std::max(label.sync_s, sync_s(mix, first, end));
        if (!std::isfinite(next.sync_s)) break;
        next.transfer_usd = label.transfer_usd + messages + (cost_matters_ ? sync_usd(mix, first, end) : 0);
        if (first == 0)
          complete(next);
        else if (stages < p_.max_stages && !hopeless(next))
          insert(next);
        if (!outcome_.complete) return;
      }
    }
  }

  void complete(const Label& label) {
    double leading = label.leading_s, sum = label.sum_s;
    if (costs_.model() == CostModel::published && label.stages > 3) {
      leading += label.last_message_s;
      sum += label.last_message_s;
    }
    Cut cut;
    cut.iteration_s =
        p_.overhead_s + rounds_ * std::max(label.bottleneck_s, leading) + sum + label.update_s + label.sync_s;
    cut.usd = cut.iteration_s * label.usd_per_s + label.transfer_usd;
    if (worse_than_accepted(cut.iteration_s, cut.usd)) return;
    for (const Label* l = &label; l != nullptr; l = l->next)
      cut.stages.push_back({l->first_layer, l->end_layer, &p_.mixes[l->mix]});
    found_(std::move(cut));
  }

  // Whatever comes before, does `a` end no later (and no dearer) than `b`?
  bool dominates(const Label& a, const Label& b) const {
    if ((a.stages == 1) != (b.stages == 1) || a.stages > b.stages) return false;
    const double later =
        rounds_ * std::max({0.0, a.bottleneck_s - b.bottleneck_s, a.leading_s - b.leading_s}) +
        (a.sum_s - b.sum_s) + std::max(0.0, a.update_s - b.update_s) + std::max(0.0, a.sync_s - b.sync_s) +
        std::max(0.0, a.last_message_s - b.last_message_s) * p_.microbatches;
    if (later > kSlack * b.sum_s) return false;
    for (size_t c = 0; c < a.used.size(); ++c)
      if (a.used[c] > b.used[c]) return false;
    return !cost_matters_ || (a.transfer_usd <= b.transfer_usd && a.usd_per_s <= b.usd_per_s * (1 + kSlack));
  }

  void insert(const Label& label) {
    std::vector<Label*>& labels = bucket(label.first_layer, label.mix);
    if (p_.dominance) {
      for (const Label* other : labels)
        if (!other->dead && dominates(*other, label)) return;
      for (Label* other : labels)
        if (!other->dead && dominates(label, *other)) other->dead = true;
      std::erase_if(labels, [](const Label* other) { return other->dead; });
    }
    if (arena_.size() >= p_.max_labels) {
      outcome_.complete = false;
      return;
    }
    arena_.push_back(label);
    labels.push_back(&arena_.back());
    ++outcome_.labels;
  }

  const CutProblem& p_;
  const StageCosts& costs_;
  const std::function<double()>& threshold_;
  const std::function<void(Cut)>& found_;
  const std::function<bool()>& expired_;
  WorkBound bound_;
  const int layers_;
  const double rounds_;
  const double bottleneck_floor_;
  const double sync_floor_;
  const bool cost_matters_;
  std::deque<Label> arena_;  // addresses stay
  std::vector<std::vector<Label*>> buckets_;
  std::vector<std::vector<std::pair<int, int>>> facing_;
  std::vector<bool> facing_known_;
  std::vector<std::vector<std::pair<double, double>>>
      link_s_;  // by pair of mixes, then layer; empty = not asked yet
  std::vector<int> left_;
  CutOutcome outcome_;
  int64_t polls_ = 0;
};

}  // namespace

CutOutcome search_cuts(const CutProblem& problem, const std::function<double()>& threshold,
                       const std::function<void(Cut)>& found, const std::function<bool()>& expired) {
  return CutSearch(problem, threshold, found, expired).run();
}

}  // namespace sailor
