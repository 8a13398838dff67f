#include "planner/search/skeleton_search.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <span>

#include "planner/search/completion_bound.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1e-12;           // relative; absorbs rounding when equals are compared
constexpr double kLoose = 1e-9;            // the same for sums in another order
constexpr size_t kMostBytes = 100u << 20;  // of labels
constexpr double kFalls = 2e-3;  // by so much has what is accepted to fall before bounds are made anew

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
  bool pure = true;        // all of its stages are
  double bound = 0;        // below its completions' values; only a beam needs it
  int bounds_version = 0;  // when it was last found not to be hopeless
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
                 const std::function<void(const Skeleton&)>& found, const std::function<bool()>& expired,
                 bool coarse = false)
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
        sync_(problem.costs, problem.replicas),
        completion_(problem, uses_, sync_, coarse),
        capacity_(capacities(problem)),
        nothing_(limits_, 0),
        threshold_now_(threshold()) {
    root_.first_layer = layers_;
    root_.used = nothing_.data();
  }

  static std::vector<double> capacities(const SkeletonProblem& p) {
    std::vector<double> out;
    for (const ResourceLimit& limit : p.limits) out.push_back(limit.capacity);
    return out;
  }

  // Of all that could be found; infinite when nothing can.
  double least_value() {
    if (limits_ == 0 || costs_.modes().empty()) return kNever;
    tighten();
    return completion_.least_value(partial(root_), false);
  }

  SkeletonOutcome run() {
    if (limits_ == 0 || costs_.modes().empty()) return outcome_;
    if (p_.bounding && hopeless(root_)) return outcome_;
    buckets_.resize((static_cast<size_t>(layers_) + 1) * costs_.modes().size());
    extend(root_);
    for (int layer = layers_ - 1; layer > 0 && outcome_.complete; --layer)
      for (int mode = 0; mode < costs_.size() && outcome_.complete; ++mode) extend_all(bucket(layer, mode));
    if (p_.beam > 0) outcome_.complete = false;
    return outcome_;
  }

 private:
  Bucket& bucket(int layer, int mode) {
    return buckets_[static_cast<size_t>(layer) * costs_.modes().size() + mode];
  }

  void extend_all(const Bucket& labels) {
    to_extend_.clear();
    for (const std::vector<Entry>* entries : {&labels.strong, &labels.weak})
      for (const Entry& entry : *entries) to_extend_.push_back(entry.label);
    if (p_.beam > 0 && to_extend_.size() > p_.beam) {
      std::stable_sort(to_extend_.begin(), to_extend_.end(),
                       [](const Label* a, const Label* b) { return a->bound < b->bound; });
      to_extend_.resize(p_.beam);
    }
    for (Label* label : to_extend_) {
      // Nothing has changed since it was inserted unless bounds have.
      if (label->bounds_version != bounds_version_ && hopeless(*label)) continue;
      extend(*label);
      if (!outcome_.complete) return;
    }
  }

  // What an iteration may still take.
  double accepted_s() const {
    return std::min(p_.goal.max_iteration_s * (1 + kLoose),
                    p_.goal.objective == Objective::throughput && p_.bounding ? threshold_now_ : kNever);
  }
  double accepted_usd() const {
    return std::min(p_.goal.max_usd * (1 + kLoose),
                    p_.goal.objective == Objective::cost && p_.bounding ? threshold_now_ : kNever);
  }

  // Keeps the bounds in step with what is accepted.
  void tighten() {
    if (!p_.bounding) return;
    const double s = accepted_s(), usd = accepted_usd();
    if (bounds_version_ > 0 && s > tightened_s_ * (1 - kFalls) && usd > tightened_usd_ * (1 - kFalls)) return;
    if (bounds_version_ > 0 && s == tightened_s_ && usd == tightened_usd_) return;
    tightened_s_ = s;
    tightened_usd_ = usd;
    ++bounds_version_;
    completion_.accept(s, usd);
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
    return p_.bounding && p_.goal.value(iteration_s, usd) >= threshold_now_;
  }

  PartialPipeline partial(const Label& label) const {
    const int in_flight =
        published_ ? label.stages + 1 : std::min(label.stages + 1, static_cast<int>(p_.microbatches));
    return {std::max(label.bottleneck_s, label.leading_s),
            label.sum_s + label.update_s,
            label.sync_s,
            label.usd_per_s,
            label.transfer_usd,
            label.used,
            label.first_layer,
            in_flight,
            label.stages > 0};
  }

  // Can no completion of the label be accepted?
  bool hopeless(Label& label) {
    const double iteration_s =
        p_.overhead_s +
        rounds_ * std::max({label.bottleneck_s, label.leading_s, completion_.bottleneck_floor_s()}) +
        label.sum_s + costs_.stage().least_compute_s(0, label.first_layer) + label.update_s + label.sync_s;
    double usd = 0;
    if (cost_matters_)
      usd = label.transfer_usd + iteration_s * label.usd_per_s +
            p_.microbatches * p_.replicas * costs_.stage().least_usd(0, label.first_layer);
    if (worse_than_accepted(iteration_s, usd)) return true;
    if (!p_.bounding) return false;
    tighten();
    label.bounds_version = bounds_version_;
    label.bound = completion_.least_value(partial(label), p_.beam == 0);
    if (std::isfinite(label.bound)) return false;
    (completion_.money_mattered() ? outcome_.over_budget : outcome_.out_of_memory) = true;
    return true;
  }

  void extend(const Label& label) {
    const int end = label.first_layer, stages = label.stages + 1;
    const int in_flight = published_ ? stages : std::min(stages, static_cast<int>(p_.microbatches));
    const bool data_parallel = p_.replicas > 1;
    std::vector<double> used(limits_);
    const double accepted = accepted_s();
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
        if (p_.bounding && at_least_s >= accepted) {
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
        next.sync_s = std::max(label.sync_s, sync_.seconds(mode, first, end));
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
    threshold_now_ = threshold_();
  }

  // How much later `a` may end than `b`, whatever comes before, as far as entries tell; at least.
  double later_s(const Entry& a, const Entry& b) const {
    return rounds_ *
               std::max({0.0, a.bottleneck_s - std::max(completion_.bottleneck_floor_s(), b.bottleneck_s),
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
    if (arena_.size() >= p_.max_labels ||
        arena_.size() * (sizeof(Label) + sizeof(Entry) + limits_ * sizeof(double)) > kMostBytes) {
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
    ++outcome_.labels;
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
  StageSync sync_;
  CompletionBound completion_;
  std::vector<double> capacity_;  // by limit
  const std::vector<double> nothing_;
  Label root_;
  double threshold_now_;  // falls only when something is found
  double tightened_s_ = kNever, tightened_usd_ = kNever;
  int bounds_version_ = 0;
  std::vector<Label*> to_extend_;
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

double least_skeleton_value(const SkeletonProblem& problem, double threshold) {
  const std::function<double()> accepted = [&] { return threshold; };
  return SkeletonSearch(
             problem, accepted, [](const Skeleton&) {}, [] { return false; }, true)
      .least_value();
}

}  // namespace sailor
