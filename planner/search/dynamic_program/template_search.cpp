#include "planner/search/dynamic_program/template_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "planner/search/dynamic_program/egress_charges.h"
#include "planner/search/dynamic_program/label_store.h"
#include "planner/search/dynamic_program/new_stage.h"
#include "planner/search/dynamic_program/template_pruning.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLoose = 1e-9;   // relative; for sums in another order
constexpr double kSlack = 1e-12;  // relative; absorbs rounding when equals are compared

class TemplateSearch {
 public:
  TemplateSearch(const TemplateProblem& problem, const std::function<double()>& threshold,
                 const std::function<void(const PipelineTemplate&)>& found,
                 const std::function<bool()>& expired, bool coarse = false)
      : p_(problem),
        costs_(problem.costs),
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
        pruning_(problem, tables_, capacity_, coarse, threshold, outcome_),
        nothing_(limits_, 0),
        used_(limits_),
        labels_(problem) {
    root_.first_layer = layers_;
    root_.used = nothing_.data();
  }

  static std::vector<double> capacities(const TemplateProblem& p) {
    std::vector<double> out;
    for (const ResourceLimit& limit : p.limits) out.push_back(limit.capacity / p.replicas);
    return out;
  }

  // Of all that could be found; infinite when nothing can.
  double least_value(bool any) {
    if (limits_ == 0 || costs_.classes().empty()) return kNever;
    pruning_.tighten();
    return pruning_.completion().least_value(pruning_.partial(root_), any);
  }

  TemplateOutcome run() {
    if (limits_ == 0 || costs_.classes().empty()) return outcome_;
    // One stage is tried faster than its bounds are made.
    if (p_.bounding && p_.max_stages > 1 && pruning_.hopeless(root_)) return outcome_;
    extend(root_);
    for (int layer = layers_ - 1; layer > 0 && outcome_.complete; --layer)
      for (int placement = 0; placement < costs_.size() && outcome_.complete; ++placement)
        extend_all(layer, placement);
    if (p_.beam > 0) outcome_.complete = false;
    outcome_.labels = labels_.inserted();
    return outcome_;
  }

 private:
  void extend_all(int layer, int placement) {
    labels_.collect(layer, placement, to_extend_);
    if (p_.beam > 0 && to_extend_.size() > p_.beam) {
      std::stable_sort(to_extend_.begin(), to_extend_.end(),
                       [](const Label* a, const Label* b) { return a->bound < b->bound; });
      to_extend_.resize(p_.beam);
    }
    for (Label* label : to_extend_) {
      // Nothing has changed since it was inserted unless bounds have.
      if (label->bounds_version != pruning_.version() && pruning_.hopeless(*label)) continue;
      extend(*label);
      if (!outcome_.complete) return;
    }
  }

  void extend(const Label& label) {
    const int end = label.first_layer;
    NewStage stage(p_, label);
    // The last one that there may be must hold all layers that are left.
    const int highest = stage.label.stages >= p_.max_stages ? 0 : end - 1;
    pruning_.set_behind(label);
    for (int placement = 0; placement < costs_.size() && outcome_.complete; ++placement) {
      const int lowest =
          costs_.lowest_first(costs_.classes()[placement].slowest(), end, stage.in_flight(), p_.replicas);
      if (lowest > 0) outcome_.out_of_memory = true;
      if (lowest > highest) continue;
      const int* number = uses_.of_segments(placement, end);
      bool class_set = false;
      for (const ClassCosts::Segment& segment : costs_.segments(placement, end)) {
        if (segment.highest < lowest) break;
        const int use = *number++;
        if (use < 0 || segment.lowest > highest) continue;
        const int longest = std::max(segment.lowest, lowest), shortest = std::min(segment.highest, highest);
        if (!pruning_.stage_possible(placement, uses_[use], longest, shortest) || !enough(label, uses_[use]))
          continue;
        if (!class_set && !stage.set_class(placement)) break;
        class_set = true;
        if (!try_lengths(stage, segment, uses_[use], shortest, longest)) break;
      }
    }
  }

  // Are there GPUs for one more stage?
  bool enough(const Label& behind, const StageUse& use) const {
    for (size_t limit = 0; limit < limits_; ++limit)
      if (behind.used[limit] + use.weights[limit] > capacity_[limit] * (1 + kSlack) + kSlack) return false;
    return true;
  }

  // The stage with each first layer from `highest` down to `lowest`, all of one segment, where `covering`
  // serves unless memory leaves out some groups. False when longer stages need not be tried.
  bool try_lengths(NewStage& stage, const ClassCosts::Segment& segment, const StageUse& covering, int highest,
                   int lowest) {
    const Label& behind = stage.behind();
    Label& next = stage.label;
    const int placement = next.placement, end = next.end_layer;
    const double accepted = pruning_.accepted_s();
    const StageUse* use = nullptr;
    uint32_t known_groups = 0;
    bool suffices = false;
    for (int first = highest; first >= lowest; --first) {
      if (++polls_ % 1024 == 0 && expired_()) {
        outcome_.complete = false;
        return false;
      }
      stage.set_first(first);
      const double at_least_s = p_.overhead_s + rounds_ * std::max(next.bottleneck_s, next.leading_s) +
                                next.sum_s + costs_.stage().least_compute_s(0, first) + behind.sync_s;
      if (p_.bounding && at_least_s >= accepted) {
        outcome_.too_slow = outcome_.too_slow || std::isfinite(p_.goal.max_iteration_s);
        return false;
      }
      const uint32_t groups = costs_.allowed(placement, first, end, stage.in_flight(), p_.replicas);
      if (groups == 0) continue;
      if (groups != known_groups) {
        known_groups = groups;
        use = groups == segment.groups ? &covering : &uses_[uses_.number(placement, groups)];
        suffices = use == &covering || enough(behind, *use);
        for (size_t limit = 0; limit < limits_; ++limit)
          used_[limit] = behind.used[limit] + use->weights[limit];
      }
      if (!suffices) continue;
      next.update_s = std::max(behind.update_s, costs_.update_s(placement, first, end, p_.replicas));
      next.sync_s = std::max(behind.sync_s, sync_.seconds(placement, first, end));
      if (!std::isfinite(next.sync_s)) continue;
      if (cost_matters_) {
        next.transfer_usd = behind.transfer_usd + stage.messages_usd();
        next.usd_per_s = behind.usd_per_s + p_.replicas * use->usd_per_s;
      }
      next.used = used_.data();
      if (first == 0)
        complete(next);
      else if (!pruning_.hopeless(next))
        outcome_.complete = labels_.insert(next, pruning_.completion().bottleneck_floor_s());
      if (!outcome_.complete) return false;
    }
    return true;
  }

  // The best way to be charged for a complete pipeline template; false when none is within the limits.
  bool count_money(const Label& label, double without_sync_s, PipelineTemplate& pipeline) {
    const PartialPipeline whole = pruning_.partial(label);
    double best = kNever;
    for (const EgressCharge& way :
         egress_charges(p_, tables_.egress(), label, without_sync_s, pruning_.completion().usd_per_s(whole),
                        pruning_.completion().transfer_usd(whole))) {
      if (pruning_.worse_than_accepted(way.iteration_s, way.usd)) continue;
      const double value = p_.goal.value(way.iteration_s, way.usd);
      if (value >= best) continue;
      best = value;
      pipeline.iteration_s = way.iteration_s;
      pipeline.usd = way.usd;
    }
    return std::isfinite(best);
  }

  // Groups of a stage's placement class that are no faster than its slowest.
  uint32_t slowest_groups(const Label& stage) const {
    const std::vector<PlacementClass::Group>& groups = costs_.classes()[stage.placement].groups;
    const auto seconds = [&](size_t g) {
      return costs_.stage().compute_s(groups[g].option, stage.first_layer, stage.end_layer);
    };
    uint32_t out = 1;
    for (size_t g = 1; g < groups.size() && g < 32; ++g)
      if (seconds(g) >= seconds(0) * (1 - kLoose)) out |= 1u << g;
    return out;
  }

  // A placement class names its slowest option, so one replica at least runs on it: a stage of which none
  // does is in another placement class, and faster. Are there GPUs for that one, too?
  bool slowest_can_serve(const Label& label) const {
    for (size_t limit = 0; limit < limits_; ++limit) {
      double used = label.used[limit] * p_.replicas;
      for (const Label* l = &label; l != nullptr; l = l->next) {
        const double behind = l->next == nullptr ? 0 : l->next->used[limit];
        used += std::max(0.0, costs_.least_weight(l->placement, slowest_groups(*l), p_.limits[limit]) -
                                  (l->used[limit] - behind));
      }
      if (used > p_.limits[limit].capacity * (1 + kLoose) + kLoose) return false;
    }
    return true;
  }

  void complete(const Label& label) {
    double leading = label.leading_s, sum = label.sum_s;
    if (published_ && label.stages > 3) {
      leading += label.last_message_s;
      sum += label.last_message_s;
    }
    PipelineTemplate pipeline;
    const double without_sync_s =
        p_.overhead_s + rounds_ * std::max(label.bottleneck_s, leading) + sum + label.update_s;
    pipeline.iteration_s = without_sync_s + label.sync_s;
    if (cost_matters_ && !count_money(label, without_sync_s, pipeline)) return;
    if (pruning_.worse_than_accepted(pipeline.iteration_s, pipeline.usd) || !slowest_can_serve(label)) return;
    for (const Label* l = &label; l != nullptr; l = l->next)
      pipeline.stages.push_back({l->first_layer, l->end_layer, l->placement});
    found_(pipeline);
    pruning_.refresh();
  }

  const TemplateProblem& p_;
  ClassCosts& costs_;
  const std::function<void(const PipelineTemplate&)>& found_;
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
  TemplateOutcome outcome_;
  TemplatePruning pruning_;
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

namespace {
double coarse_value(const TemplateProblem& problem, double threshold, bool any) {
  const std::function<double()> accepted = [&] { return threshold; };
  return TemplateSearch(
             problem, accepted, [](const PipelineTemplate&) {}, [] { return false; }, true)
      .least_value(any);
}
}  // namespace

double least_template_value(const TemplateProblem& problem, double threshold) {
  return coarse_value(problem, threshold, false);
}

bool templates_possible(const TemplateProblem& problem, double threshold) {
  return std::isfinite(coarse_value(problem, threshold, true));
}

}  // namespace sailor
