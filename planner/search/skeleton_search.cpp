#include "planner/search/skeleton_search.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <span>

#include "planner/search/coverage.h"
#include "planner/search/least_sum.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1e-12;  // relative; absorbs rounding when equals are compared
constexpr double kLoose = 1e-9;   // the same for sums in another order
constexpr double kLevel = 0.04;   // between the bottlenecks for which coverage is known
constexpr size_t kLevels = 6;
constexpr int kFloorSteps = 7;
constexpr int64_t kManyLabels = 1000;  // from here on it pays to know the floor of bottlenecks

// A partial pipeline: stages from some layer to the last.
struct Label {
  const Label* next = nullptr;  // the stages behind the leading one
  double bottleneck_s = 0;      // of all stages but the leading one
  double leading_s = 0;         // of the leading stage so far: what the stage before it adds is missing
  double last_message_s = 0;    // activation from the leading stage to the next
  double sum_s = 0;
  double update_s = 0;
  double sync_s = 0;
  double usd_per_s = 0;
  double transfer_usd = 0;
  const double* used = nullptr;  // by limit
  int first_layer = 0;
  int end_layer = 0;  // of the leading stage
  int mode = 0;       // of the leading stage
  int stages = 0;
  bool pure = true;  // all of its stages are
};

// What decides most comparisons of labels, side by side in memory.
struct Entry {
  double sum_s, bottleneck_s, leading_s, first_used;
  int stages;
  Label* label;
};

// The labels of one first layer and leading mode.
struct Bucket {
  std::vector<Entry> strong;  // may dominate others; by sum
  std::vector<Entry> weak;    // may not
};

class SkeletonSearch {
 public:
  SkeletonSearch(const SkeletonProblem& problem, const std::function<double()>& threshold,
                 const std::function<void(const Skeleton&)>& found, const std::function<bool()>& expired)
      : p_(problem),
        costs_(problem.costs),
        threshold_(threshold),
        found_(found),
        expired_(expired),
        published_(problem.costs.stage().model() == CostModel::published),
        layers_(problem.costs.stage().layers()),
        rounds_(problem.microbatches - 1),
        limits_(problem.limits.size()),
        cost_matters_(problem.goal.objective == Objective::cost || std::isfinite(problem.goal.max_usd)),
        uses_(problem.costs, problem.limits, problem.replicas),
        coverage_(kLevels),
        least_sum_(problem.costs, uses_, capacities(problem)) {
    buckets_.resize((static_cast<size_t>(layers_) + 1) * costs_.modes().size());
    capacity_ = left_ = capacities(p_);
  }

  static std::vector<double> capacities(const SkeletonProblem& p) {
    std::vector<double> out;
    for (const ResourceLimit& limit : p.limits) out.push_back(limit.capacity);
    return out;
  }
  SkeletonOutcome run() {
    if (limits_ == 0 || costs_.modes().empty()) return outcome_;
    tighten();
    if (p_.bounding && std::isfinite(tightened_for_) &&
        !coverage_at(0).possible(layers_, 1, false, capacity_.data()))
      return outcome_;
    Label root;
    root.first_layer = layers_;
    const std::vector<double> nothing(limits_, 0);
    root.used = nothing.data();
    extend(root);
    if (!outcome_.complete) return outcome_;
    for (int layer = layers_ - 1; layer > 0; --layer)
      for (int mode = 0; mode < costs_.size(); ++mode)
        for (const std::vector<Entry>* entries : {&bucket(layer, mode).strong, &bucket(layer, mode).weak})
          for (const Entry& entry : *entries) {
            if (hopeless(*entry.label)) continue;
            extend(*entry.label);
            if (!outcome_.complete) return outcome_;
          }
    return outcome_;
  }

 private:
  Bucket& bucket(int layer, int mode) {
    return buckets_[static_cast<size_t>(layer) * costs_.modes().size() + mode];
  }

  // What an iteration may still take.
  double accepted_s() const {
    return std::min(p_.goal.max_iteration_s,
                    p_.goal.objective == Objective::throughput && p_.bounding ? threshold_() : kNever);
  }

  // Keeps the bound on coverage in step with what is accepted.
  void tighten() {
    if (!p_.bounding) return;
    const double accepted = accepted_s();
    if (accepted > tightened_for_ * (1 - 1e-3) || rounds_ <= 0 || !std::isfinite(accepted)) return;
    tightened_for_ = accepted;
    // Each layer is computed once outside the rounds.
    const double once = costs_.stage().least_compute_s(0, layers_);
    most_bottleneck_s_ = (accepted - p_.overhead_s - once) / rounds_;
    for (auto& level : coverage_)
      if (level) level->set_bottleneck(0);  // to be set when it is asked for
    if (least_sum_known_) least_sum_.update(coverage_at(0));
    if (floor_known_) find_floor();
  }

  Coverage new_coverage() {
    return {costs_, uses_, p_.replicas,
            published_ ? layers_ : static_cast<int>(std::min(p_.microbatches, 1e6))};
  }

  Coverage& coverage_at(size_t level) {
    std::optional<Coverage>& coverage = coverage_[std::min(level, coverage_.size() - 1)];
    if (!coverage) coverage.emplace(new_coverage());
    if (coverage->bottleneck_s() == 0)
      coverage->set_bottleneck(most_bottleneck_s_ *
                               (1 - kLevel * static_cast<double>(&coverage - coverage_.data())));
    return *coverage;
  }

  // Every pipeline has a stage as long as this.
  void find_floor() {
    floor_known_ = true;
    if (!std::isfinite(tightened_for_)) return;
    if (!floor_probe_) floor_probe_.emplace(new_coverage());
    double low = 0, high = most_bottleneck_s_;
    for (int step = 0; step < kFloorSteps; ++step) {
      const double middle = step == 0 ? high * (1 - static_cast<double>(kLevels) * kLevel) : (low + high) / 2;
      floor_probe_->set_bottleneck(middle);
      (floor_probe_->possible(layers_, 1, false, capacity_.data()) ? high : low) = middle;
    }
    bottleneck_floor_s_ = std::max(bottleneck_floor_s_, low);
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
    return p_.bounding && p_.goal.value(iteration_s, usd) >= threshold_();
  }

  // Can no completion of the label be accepted?
  bool hopeless(const Label& label) {
    const double iteration_s =
        p_.overhead_s + rounds_ * std::max({label.bottleneck_s, label.leading_s, bottleneck_floor_s_}) +
        label.sum_s + costs_.stage().least_compute_s(0, label.first_layer) + label.update_s + label.sync_s;
    double usd = 0;
    if (cost_matters_)
      usd = label.transfer_usd + iteration_s * label.usd_per_s +
            p_.microbatches * p_.replicas * costs_.stage().least_usd(0, label.first_layer);
    if (worse_than_accepted(iteration_s, usd)) return true;
    if (!p_.bounding) return false;
    tighten();
    if (!std::isfinite(tightened_for_)) return false;
    for (size_t limit = 0; limit < limits_; ++limit) left_[limit] = capacity_[limit] - label.used[limit];
    if (!least_sum_known_) {
      least_sum_known_ = true;
      least_sum_.update(coverage_at(0));
    }
    // What the stages that are still to come may take each, at most.
    const double sum_s = label.sum_s + std::max(costs_.stage().least_compute_s(0, label.first_layer),
                                                least_sum_.seconds(label.first_layer, left_.data()));
    const double allowed_s = (accepted_s() - p_.overhead_s - sum_s - label.update_s - label.sync_s) / rounds_;
    if (std::max(label.bottleneck_s, label.leading_s) > allowed_s * (1 + kLoose)) return true;
    const auto level = static_cast<size_t>(std::max(0.0, (1 - allowed_s / most_bottleneck_s_) / kLevel));
    int in_flight = label.stages + 1;
    if (!published_) in_flight = std::min(in_flight, static_cast<int>(p_.microbatches));
    if (coverage_at(level).possible(label.first_layer, in_flight, true, left_.data())) return false;
    outcome_.out_of_memory = true;
    return true;
  }

  void extend(const Label& label) {
    const int end = label.first_layer, stages = label.stages + 1;
    const int in_flight = published_ ? stages : std::min(stages, static_cast<int>(p_.microbatches));
    const bool data_parallel = p_.replicas > 1;
    std::vector<double> used(limits_);
    Label next;
    next.next = label.stages > 0 ? &label : nullptr;
    next.end_layer = end;
    next.stages = stages;
    for (int mode = 0; mode < costs_.size(); ++mode) {
      next.mode = mode;
      next.pure = label.pure && costs_.modes()[mode].kind == StageMode::Kind::pure;
      const int lowest = costs_.lowest_first(costs_.modes()[mode].slowest(), end, in_flight, data_parallel);
      if (lowest > 0) outcome_.out_of_memory = true;
      if (lowest >= end) continue;
      double activation = 0, gradient = 0;
      if (label.stages > 0) {
        activation = costs_.activation_s(mode, label.mode, end);
        gradient = costs_.gradient_s(mode, label.mode, end);
        if (!std::isfinite(activation) || !std::isfinite(gradient)) continue;
      }
      double sum = label.sum_s + activation;
      // The stage that was leading is now complete: its gradient message is known.
      if (published_) {
        const double extra = (label.stages == 1 ? 2 : 1) * gradient;
        next.bottleneck_s = std::max(label.bottleneck_s, label.leading_s + extra);
        sum += extra;
      } else {
        next.bottleneck_s = std::max({label.bottleneck_s, label.leading_s, gradient});
        sum += gradient;
      }
      next.last_message_s = activation;
      double messages = -1;
      uint32_t known_groups = 0;
      const StageUse* use = nullptr;
      bool enough = false;
      const bool last_stage = stages >= p_.max_stages;  // then it must hold all layers that are left
      if (last_stage && lowest > 0) continue;
      for (int first = last_stage ? 0 : end - 1; first >= lowest; --first) {
        if (++polls_ % 1024 == 0 && expired_()) {
          outcome_.complete = false;
          return;
        }
        const double compute = costs_.compute_s(mode, first, end);
        next.first_layer = first;
        next.leading_s = published_ ? compute + activation : std::max(compute, activation);
        next.sum_s = sum + compute;
        const double at_least_s = p_.overhead_s + rounds_ * std::max(next.bottleneck_s, next.leading_s) +
                                  next.sum_s + costs_.stage().least_compute_s(0, first) + label.sync_s;
        if (p_.bounding && at_least_s >= accepted_s()) {
          outcome_.too_slow = outcome_.too_slow || std::isfinite(p_.goal.max_iteration_s);
          break;
        }
        const uint32_t groups = costs_.allowed(mode, first, end, in_flight, data_parallel);
        if (groups == 0) continue;
        if (groups != known_groups) {
          known_groups = groups;
          use = &uses_.of(mode, groups);
          enough = true;
          for (size_t limit = 0; limit < limits_; ++limit) {
            used[limit] = label.used[limit] + use->weights[limit];
            enough = enough && used[limit] <= capacity_[limit] * (1 + kSlack) + kSlack;
          }
        }
        if (!enough) continue;
        next.update_s = std::max(label.update_s, costs_.update_s(mode, first, end));
        next.sync_s = std::max(label.sync_s, costs_.sync_s(mode, first, end, p_.replicas));
        if (!std::isfinite(next.sync_s)) continue;
        if (cost_matters_) {
          if (messages < 0)
            messages = label.stages > 0
                           ? p_.microbatches * p_.replicas * costs_.message_usd(mode, label.mode, end)
                           : 0;
          next.transfer_usd = label.transfer_usd + messages;
          next.usd_per_s = label.usd_per_s + use->usd_per_s;
        }
        next.used = used.data();
        if (first == 0)
          complete(next);
        else if (!hopeless(next))
          insert(next);
        if (!outcome_.complete) return;
      }
    }
  }

  void complete(const Label& label) {
    double leading = label.leading_s, sum = label.sum_s;
    if (published_ && label.stages > 3) {
      leading += label.last_message_s;
      sum += label.last_message_s;
    }
    Skeleton skeleton;
    skeleton.iteration_s =
        p_.overhead_s + rounds_ * std::max(label.bottleneck_s, leading) + sum + label.update_s + label.sync_s;
    skeleton.usd = skeleton.iteration_s * label.usd_per_s + label.transfer_usd;
    if (worse_than_accepted(skeleton.iteration_s, skeleton.usd)) return;
    for (const Label* l = &label; l != nullptr; l = l->next)
      skeleton.stages.push_back({l->first_layer, l->end_layer, l->mode});
    found_(skeleton);
  }

  // How much later `a` may end than `b`, whatever comes before, as far as entries tell; at least.
  double later_s(const Entry& a, const Entry& b) const {
    return rounds_ * std::max({0.0, a.bottleneck_s - std::max(bottleneck_floor_s_, b.bottleneck_s),
                               a.leading_s - b.leading_s}) +
           (a.sum_s - b.sum_s);
  }

  // Whatever comes before, does `a` end no later (and no dearer) than `b`?
  bool dominates(const Entry& one, const Entry& other) const {
    if (one.stages > other.stages || one.first_used > other.first_used * (1 + kSlack)) return false;
    const double later = later_s(one, other);
    if (later > 0) return false;
    if ((one.stages == 1) != (other.stages == 1)) return false;
    const Label &a = *one.label, &b = *other.label;
    if (later + std::max(0.0, a.update_s - b.update_s) + std::max(0.0, a.sync_s - b.sync_s) +
            std::max(0.0, a.last_message_s - b.last_message_s) * p_.microbatches >
        0)
      return false;
    if (cost_matters_ && (a.transfer_usd > b.transfer_usd || a.usd_per_s > b.usd_per_s * (1 + kSlack)))
      return false;
    for (size_t limit = 1; limit < limits_; ++limit)
      if (a.used[limit] > b.used[limit] * (1 + kSlack)) return false;
    return true;
  }

  void insert(Label& label) {
    Bucket& labels = bucket(label.first_layer, label.mode);
    Entry entry{label.sum_s, label.bottleneck_s, label.leading_s, label.used[0], label.stages, &label};
    const bool strong = p_.dominance && (label.pure || !p_.pure_dominance);
    // In the order of sums: only what stands before can dominate, only what stands behind can be dominated.
    const auto place = std::upper_bound(labels.strong.begin(), labels.strong.end(), entry,
                                        [](const Entry& a, const Entry& b) { return a.sum_s < b.sum_s; }) -
                       labels.strong.begin();
    if (p_.dominance) {
      for (ptrdiff_t i = 0; i < place; ++i)
        if (dominates(labels.strong[i], entry)) return;
      const auto beaten = [&](const Entry& other) { return dominates(entry, other); };
      if (strong) {
        labels.strong.erase(std::remove_if(labels.strong.begin() + place, labels.strong.end(), beaten),
                            labels.strong.end());
        std::erase_if(labels.weak, beaten);
      }
    }
    if (arena_.size() >= p_.max_labels) {
      outcome_.complete = false;
      return;
    }
    if (used_free_ + limits_ > used_block_.size()) {
      used_arena_.emplace_back(4096 * limits_);
      used_block_ = {used_arena_.back().data(), used_arena_.back().size()};
      used_free_ = 0;
    }
    double* used = used_block_.data() + used_free_;
    used_free_ += limits_;
    std::copy_n(label.used, limits_, used);
    arena_.push_back(label);
    arena_.back().used = used;
    entry.label = &arena_.back();
    if (strong)
      labels.strong.insert(labels.strong.begin() + place, entry);
    else
      labels.weak.push_back(entry);
    if (++outcome_.labels == kManyLabels && p_.bounding) find_floor();
  }

  const SkeletonProblem& p_;
  ModeCosts& costs_;
  const std::function<double()>& threshold_;
  const std::function<void(const Skeleton&)>& found_;
  const std::function<bool()>& expired_;
  const bool published_;
  const int layers_;
  const double rounds_;
  const size_t limits_;
  const bool cost_matters_;
  StageUses uses_;
  std::vector<std::optional<Coverage>> coverage_;  // for ever shorter stages
  std::optional<Coverage> floor_probe_;
  double most_bottleneck_s_ = 0;
  bool least_sum_known_ = false, floor_known_ = false;
  LeastSum least_sum_;
  double tightened_for_ = kNever;
  double bottleneck_floor_s_ = 0;
  std::vector<double> capacity_, left_;         // by limit
  std::deque<Label> arena_;                     // addresses stay
  std::deque<std::vector<double>> used_arena_;  // addresses stay
  std::span<double> used_block_;
  size_t used_free_ = 0;
  std::vector<Bucket> buckets_;
  SkeletonOutcome outcome_;
  int64_t polls_ = 0;
};

}  // namespace

SkeletonOutcome search_skeletons(const SkeletonProblem& problem, const std::function<double()>& threshold,
                                 const std::function<void(const Skeleton&)>& found,
                                 const std::function<bool()>& expired) {
  return SkeletonSearch(problem, threshold, found, expired).run();
}

}  // namespace sailor
