#include "planner/search/dynamic_program/template_search.h"

#include <algorithm>
#include <cmath>

#include "planner/search/bounds/completion_bound.h"
#include "planner/search/dynamic_program/label_store.h"
#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

constexpr double kReordered = 1e-9;  // relative; for sums in another order
constexpr double kFalls = 2e-3;      // by so much has what is accepted to fall before bounds are updated

class TemplateSearch {
 public:
  TemplateSearch(const TemplateProblem& problem, const std::function<double()>& threshold,
                 const std::function<void(const PipelineTemplate&)>& found,
                 const std::function<bool()>& expired)
      : p_(problem),
        costs_(problem.costs),
        threshold_(threshold),
        found_(found),
        expired_(expired),
        layers_(problem.costs.stage().layers()),
        rounds_(problem.microbatches - 1),
        limits_(problem.limits.size()),
        charge_matters_(problem.goal.charge_matters()),
        uses_(problem.tables.uses()),
        sync_(problem.tables.sync(problem.replicas)),
        capacity_(capacities(problem)),
        completion_(problem, problem.tables, capacity_, {}),
        threshold_now_(threshold()),
        nothing_(limits_, 0),
        used_(limits_),
        labels_(problem) {
    root_.first_layer = layers_;
    root_.used = nothing_.data();
  }

  TemplateOutcome run() {
    if (limits_ == 0 || costs_.classes().empty()) return outcome_;
    // One stage is searched faster than its bounds are made.
    if (p_.bounding && p_.max_stages > 1 && hopeless(root_)) return outcome_;
    extend(root_);
    for (int layer = layers_ - 1; layer > 0 && outcome_.complete; --layer)
      for (int placement = 0; placement < costs_.size() && outcome_.complete; ++placement) {
        labels_.collect(layer, placement, to_extend_);
        for (Label* label : to_extend_) {
          // Nothing has changed since it was inserted unless bounds have.
          if (label->bounds_version != bounds_version_ && hopeless(*label)) continue;
          extend(*label);
          if (!outcome_.complete) break;
        }
      }
    outcome_.labels = labels_.inserted();
    return outcome_;
  }

 private:
  static std::vector<double> capacities(const TemplateProblem& p) {
    std::vector<double> out;
    for (const ResourceLimit& limit : p.limits) out.push_back(limit.capacity / p.replicas);
    return out;
  }

  // Keeps the bounds in step with what is accepted: the user's limits, and the threshold, which falls as
  // templates are found.
  void tighten() {
    const bool throughput = !p_.goal.objective.expense();
    const double s =
        std::min(p_.goal.max_iteration_s * (1 + kReordered), throughput ? threshold_now_ : kNever);
    const double charge =
        std::min(p_.goal.max_charge() * (1 + kReordered), throughput ? kNever : threshold_now_);
    if (bounds_version_ > 0 &&
        ((s > tightened_s_ * (1 - kFalls) && charge > tightened_charge_ * (1 - kFalls)) ||
         (s == tightened_s_ && charge == tightened_charge_)))
      return;
    tightened_s_ = s;
    tightened_charge_ = charge;
    ++bounds_version_;
    completion_.accept(s, charge);
  }
  bool worse_than_accepted(double iteration_s, double charge) {
    outcome_.too_slow = outcome_.too_slow || iteration_s > p_.goal.max_iteration_s;
    outcome_.over_budget = outcome_.over_budget || charge > p_.goal.max_charge();
    const double value = p_.goal.allowed_value(iteration_s, charge);
    return !std::isfinite(value) || (p_.bounding && value >= threshold_now_);
  }
  // Can no completion of the label be accepted?
  bool hopeless(Label& label) {
    const double iteration_s =
        rounds_ * std::max({label.bottleneck_s, label.leading_s, completion_.bottleneck_floor_s()}) +
        label.sum_s + costs_.stage().least_compute_s(0, label.first_layer) + label.update_s + label.sync_s;
    double charge = 0;
    if (charge_matters_)
      charge = label.fixed_charge + iteration_s * label.charge_per_s +
               p_.microbatches * p_.replicas * costs_.stage().least_charge(0, label.first_layer);
    if (worse_than_accepted(iteration_s, charge)) return true;
    if (!p_.bounding) return false;
    tighten();
    label.bounds_version = bounds_version_;
    if (completion_.possible(label)) return false;
    (completion_.money_mattered() ? outcome_.over_budget : outcome_.out_of_memory) = true;
    return true;
  }

  // Might a stage right before `behind` be part of what is accepted?
  bool stage_possible(const Label& behind, int placement, const StageUse& use, int lowest, int highest) {
    if (!p_.bounding) return true;
    if (behind_version_ != bounds_version_) set_behind(behind);
    if (completion_.stage_possible(placement, use, lowest, highest)) return true;
    // Only what is accepted already, or a limit, refuses a stage here; memory alone never does.
    outcome_.over_budget = outcome_.over_budget || completion_.money_mattered();
    return false;
  }
  void set_behind(const Label& behind) {
    behind_version_ = bounds_version_;
    if (p_.bounding) completion_.set_behind(behind);
  }

  void extend(const Label& behind) {
    const int end = behind.first_layer;
    set_behind(behind);
    Label next;
    const int stages = behind.stages + 1;
    // The last one that there may be must hold all layers that are left.
    const int highest = stages >= p_.max_stages ? 0 : end - 1;
    for (int placement = 0; placement < costs_.size() && outcome_.complete; ++placement) {
      const int lowest = costs_.lowest_first(costs_.classes()[placement].slowest(), end, stages);
      if (lowest > 0) outcome_.out_of_memory = true;
      if (lowest > highest) continue;
      const int* number = uses_.of_segments(placement, end);
      double sum_s = kNever;
      for (const ClassCosts::Segment& segment : costs_.segments(placement, end)) {
        if (segment.highest < lowest) break;
        const int use = *number++;
        if (use < 0 || segment.lowest > highest || !enough(behind, uses_[use])) continue;
        const int longest = std::max(segment.lowest, lowest), shortest = std::min(segment.highest, highest);
        if (!stage_possible(behind, placement, uses_[use], longest, shortest)) continue;
        if (!std::isfinite(sum_s)) sum_s = set_class(placement, behind, next);
        if (!std::isfinite(sum_s) ||
            !try_lengths(behind, next, sum_s, segment, uses_[use], shortest, longest))
          break;
      }
    }
  }

  // Begins the label with a stage of this class; returns the sum of times so far.
  double set_class(int placement, const Label& behind, Label& next) {
    next.pure = behind.pure && costs_.classes()[placement].kind == PlacementClass::Kind::pure;
    if (charge_matters_ && behind.stages > 0)
      next.fixed_charge =
          behind.fixed_charge + p_.microbatches * p_.replicas *
                                    costs_.message_charge(placement, behind.placement, behind.first_layer);
    begun_charge_ = next.fixed_charge;
    return next.begin(costs_, placement, behind);
  }

  // Are there GPUs for one more stage?
  bool enough(const Label& behind, const StageUse& use) const {
    for (size_t limit = 0; limit < limits_; ++limit)
      if (behind.used[limit] + use.weights[limit] > capacity_[limit] * (1 + kEqualWithin) + kEqualWithin)
        return false;
    return true;
  }

  // The stage with each first layer from `highest` down to `lowest`, all of one segment, for which `covering`
  // applies unless memory excludes some groups. False if longer stages need not be tried.
  bool try_lengths(const Label& behind, Label& next, double sum_s, const ClassCosts::Segment& segment,
                   const StageUse& covering, int highest, int lowest) {
    const int placement = next.placement, end = next.end_layer;
    const StageUse* use = nullptr;
    uint32_t known_groups = 0;
    bool suffices = false;
    for (int first = highest; first >= lowest; --first) {
      if (++polls_ % 1024 == 0 && expired_()) {
        outcome_.complete = false;
        return false;
      }
      next.set_first(costs_, first, sum_s);
      const double at_least_s =
          rounds_ * next.slowest_s() + next.sum_s + costs_.stage().least_compute_s(0, first) + behind.sync_s;
      if (p_.bounding && at_least_s >= accepted_s()) {
        outcome_.too_slow = outcome_.too_slow || std::isfinite(p_.goal.max_iteration_s);
        return false;
      }
      const uint32_t groups = costs_.allowed(placement, first, end, next.stages);
      if (groups == 0) continue;
      if (groups != known_groups) {
        known_groups = groups;
        use = groups == segment.groups ? &covering : &uses_[uses_.number(placement, groups)];
        suffices = use == &covering || enough(behind, *use);
        for (size_t limit = 0; limit < limits_; ++limit)
          used_[limit] = behind.used[limit] + use->weights[limit];
      }
      if (!suffices) continue;
      next.set_update_and_sync(costs_, sync_);
      if (!std::isfinite(next.sync_s)) continue;
      if (charge_matters_) next.charge_per_s = behind.charge_per_s + p_.replicas * use->charge_per_s;
      if (charge_matters_ && costs_.stage().work_charged())
        next.fixed_charge = begun_charge_ + p_.microbatches * p_.replicas *
                                                costs_.least_work_charge(placement, groups, first, end);
      next.used = used_.data();
      if (first == 0)
        complete(next);
      else if (!hopeless(next))
        outcome_.complete = labels_.insert(next, completion_.bottleneck_floor_s());
      if (!outcome_.complete) return false;
    }
    return true;
  }
  double accepted_s() const {
    return std::min(p_.goal.max_iteration_s * (1 + kReordered),
                    !p_.goal.objective.expense() ? threshold_now_ : kNever);
  }

  void complete(Label& label) {
    label.complete();
    PipelineTemplate pipeline;
    pipeline.iteration_s = label.iteration_s(rounds_);
    if (charge_matters_)
      pipeline.charge =
          pipeline.iteration_s * completion_.charge_per_s(label) + completion_.fixed_charge(label);
    if (worse_than_accepted(pipeline.iteration_s, pipeline.charge)) return;
    pipeline.stages = label.path();
    found_(pipeline);
    threshold_now_ = threshold_();
  }

  const TemplateProblem& p_;
  ClassCosts& costs_;
  const std::function<double()>& threshold_;
  const std::function<void(const PipelineTemplate&)>& found_;
  const std::function<bool()>& expired_;
  const int layers_;
  const double rounds_;
  const size_t limits_;
  const bool charge_matters_;
  StageUses& uses_;
  const StageSync& sync_;
  const std::vector<double> capacity_;  // by limit, for one replica
  TemplateOutcome outcome_;
  CompletionBound completion_;
  double threshold_now_;     // falls only when something is found
  double begun_charge_ = 0;  // of the new stage's message and all behind it
  double tightened_s_ = kNever, tightened_charge_ = kNever;
  int bounds_version_ = 0;
  int behind_version_ = 0;  // of the bounds that stage_possible() has
  const std::vector<double> nothing_;
  std::vector<double> used_;  // by the new stage and those behind
  Label root_;
  std::vector<Label*> to_extend_;
  LabelStore labels_;
  int64_t polls_ = 0;
};

}  // namespace

TemplateOutcome search_templates(const TemplateProblem& problem, const std::function<double()>& threshold,
                                 const std::function<void(const PipelineTemplate&)>& found,
                                 const std::function<bool()>& expired) {
  return TemplateSearch(problem, threshold, found, expired).run();
}

}  // namespace sailor
