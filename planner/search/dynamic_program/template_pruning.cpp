#include "planner/search/dynamic_program/template_pruning.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLoose = 1e-9;  // relative; for sums in another order
constexpr double kFalls = 2e-3;  // by so much has what is accepted to fall before bounds are made anew

}  // namespace

TemplatePruning::TemplatePruning(const TemplateProblem& problem, BoundTables& tables,
                                 const std::vector<double>& capacity, bool coarse,
                                 const std::function<double()>& threshold, TemplateOutcome& outcome)
    : p_(problem),
      costs_(problem.costs),
      published_(problem.costs.stage().model() == CostModel::published),
      rounds_(problem.microbatches - 1),
      cost_matters_(problem.goal.objective == Objective::cost || std::isfinite(problem.goal.max_usd)),
      threshold_(threshold),
      outcome_(outcome),
      completion_(problem, tables, capacity, coarse || problem.beam > 0),
      threshold_now_(threshold()),
      tightened_s_(kNever),
      tightened_usd_(kNever) {}

double TemplatePruning::accepted_s() const {
  return std::min(p_.goal.max_iteration_s * (1 + kLoose),
                  p_.goal.objective == Objective::throughput && p_.bounding ? threshold_now_ : kNever);
}
double TemplatePruning::accepted_usd() const {
  return std::min(p_.goal.max_usd * (1 + kLoose),
                  p_.goal.objective == Objective::cost && p_.bounding ? threshold_now_ : kNever);
}

void TemplatePruning::tighten() {
  if (!p_.bounding) return;
  const double s = accepted_s(), usd = accepted_usd();
  if (bounds_version_ > 0 && s > tightened_s_ * (1 - kFalls) && usd > tightened_usd_ * (1 - kFalls)) return;
  if (bounds_version_ > 0 && s == tightened_s_ && usd == tightened_usd_) return;
  tightened_s_ = s;
  tightened_usd_ = usd;
  ++bounds_version_;
  completion_.accept(s, usd);
}

bool TemplatePruning::worse_than_accepted(double iteration_s, double usd) {
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

PartialPipeline TemplatePruning::partial(const Label& label) const {
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

void TemplatePruning::set_behind(const Label& label) {
  behind_ = &label;
  behind_version_ = bounds_version_;
  if (p_.bounding) completion_.set_behind(partial(label));
}

bool TemplatePruning::hopeless(Label& label) {
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

}  // namespace sailor
