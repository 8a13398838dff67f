#include "planner/search/skeleton_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "planner/search/completion_bound.h"
#include "planner/search/label_store.h"
#include "planner/search/layout.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1e-12;  // relative; absorbs rounding when equals are compared
constexpr double kLoose = 1e-9;   // the same for sums in another order
constexpr double kFalls = 2e-3;   // by so much has what is accepted to fall before bounds are made anew

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
        own_tables_(problem.tables == nullptr ? std::make_unique<BoundTables>(problem.costs, problem.limits)
                                              : nullptr),
        tables_(problem.tables == nullptr ? *own_tables_ : *problem.tables),
        uses_(tables_.uses()),
        sync_(tables_.sync(problem.replicas)),
        capacity_(capacities(problem)),
        completion_(problem, tables_, capacity_, coarse || problem.beam > 0),
        nothing_(limits_, 0),
        threshold_now_(threshold()),
        labels_(problem) {
    root_.first_layer = layers_;
    root_.used = nothing_.data();
  }

  static std::vector<double> capacities(const SkeletonProblem& p) {
    std::vector<double> out;
    for (const ResourceLimit& limit : p.limits) out.push_back(limit.capacity / p.replicas);
    return out;
  }

  // Of all that could be found; infinite when nothing can.
  double least_value(bool any) {
    if (limits_ == 0 || costs_.modes().empty()) return kNever;
    tighten();
    return completion_.least_value(partial(root_), any);
  }

  SkeletonOutcome run() {
    if (limits_ == 0 || costs_.modes().empty()) return outcome_;
    // One stage is looked at more quickly than its bounds are made.
    if (p_.bounding && p_.max_stages > 1 && hopeless(root_)) return outcome_;
    extend(root_);
    for (int layer = layers_ - 1; layer > 0 && outcome_.complete; --layer)
      for (int mode = 0; mode < costs_.size() && outcome_.complete; ++mode) extend_all(layer, mode);
    if (p_.beam > 0) outcome_.complete = false;
    outcome_.labels = labels_.inserted();
    return outcome_;
  }

 private:
  void extend_all(int layer, int mode) {
    labels_.collect(layer, mode, to_extend_);
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
    std::vector<double> used(limits_);
    const double accepted = accepted_s();
    Label next;
    next.next = label.stages > 0 ? &label : nullptr;
    next.end_layer = end;
    next.stages = stages;
    for (int mode = 0; mode < costs_.size(); ++mode) {
      next.mode = mode;
      next.pure = label.pure && costs_.modes()[mode].kind == StageMode::Kind::pure;
      const int lowest = costs_.lowest_first(costs_.modes()[mode].slowest(), end, in_flight, p_.replicas);
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
        next.sum_s = sum + compute;
        next.leading_s = published_ ? compute + activation
                                    : std::max({compute, activation, round_trip_s(next.sum_s, stages)});
        const double at_least_s = p_.overhead_s + rounds_ * std::max(next.bottleneck_s, next.leading_s) +
                                  next.sum_s + costs_.stage().least_compute_s(0, first) + label.sync_s;
        if (p_.bounding && at_least_s >= accepted) {
          outcome_.too_slow = outcome_.too_slow || std::isfinite(p_.goal.max_iteration_s);
          break;
        }
        const uint32_t groups = costs_.allowed(mode, first, end, in_flight, p_.replicas);
        if (groups == 0) continue;
        if (groups != known_groups) {
          known_groups = groups;
          use = &uses_[uses_.number(mode, groups)];
          enough = true;
          for (size_t limit = 0; limit < limits_; ++limit) {
            used[limit] = label.used[limit] + use->weights[limit];
            enough = enough && used[limit] <= capacity_[limit] * (1 + kSlack) + kSlack;
          }
        }
        if (!enough) continue;
        next.update_s = std::max(label.update_s, costs_.update_s(mode, first, end, p_.replicas));
        next.sync_s = std::max(label.sync_s, sync_.seconds(mode, first, end));
        if (!std::isfinite(next.sync_s)) continue;
        if (cost_matters_) {
          if (messages < 0)
            messages = label.stages > 0
                           ? p_.microbatches * p_.replicas * costs_.message_usd(mode, label.mode, end)
                           : 0;
          next.transfer_usd = label.transfer_usd + messages;
          next.usd_per_s = label.usd_per_s + p_.replicas * use->usd_per_s;
        }
        next.used = used.data();
        if (first == 0)
          complete(next);
        else if (!hopeless(next))
          outcome_.complete = labels_.insert(next, completion_.bottleneck_floor_s());
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

  double round_trip_s(double sum_s, int stages) const {
    return round_trip_bottleneck_s(sum_s, stages, p_.microbatches);
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
  const std::unique_ptr<BoundTables> own_tables_;  // when the problem has none
  BoundTables& tables_;
  StageUses& uses_;
  const StageSync& sync_;
  const std::vector<double> capacity_;  // by limit, for one replica
  CompletionBound completion_;
  const std::vector<double> nothing_;
  Label root_;
  double threshold_now_;  // falls only when something is found
  double tightened_s_ = kNever, tightened_usd_ = kNever;
  int bounds_version_ = 0;
  std::vector<Label*> to_extend_;
  LabelStore labels_;
  SkeletonOutcome outcome_;
  int64_t polls_ = 0;
};

}  // namespace

SkeletonOutcome search_skeletons(const SkeletonProblem& problem, const std::function<double()>& threshold,
                                 const std::function<void(const Skeleton&)>& found,
                                 const std::function<bool()>& expired) {
  return SkeletonSearch(problem, threshold, found, expired).run();
}

namespace {
double coarse_value(const SkeletonProblem& problem, double threshold, bool any) {
  const std::function<double()> accepted = [&] { return threshold; };
  return SkeletonSearch(
             problem, accepted, [](const Skeleton&) {}, [] { return false; }, true)
      .least_value(any);
}
}  // namespace

double least_skeleton_value(const SkeletonProblem& problem, double threshold) {
  return coarse_value(problem, threshold, false);
}

bool skeletons_possible(const SkeletonProblem& problem, double threshold) {
  return std::isfinite(coarse_value(problem, threshold, true));
}

}  // namespace sailor
