#include "planner/search/bounds/completion_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {
constexpr double kLoose = 1e-9;  // relative; for sums in another order

constexpr double kLevel = 0.03;  // between levels, when that many suffice
// By so much has the time for gradients to fall before stages are limited again.
constexpr double kWorthwhile = 0.01;
}  // namespace

CompletionBound::CompletionBound(const TemplateProblem& problem, BoundTables& tables,
                                 const std::vector<double>& capacity, const CompletionOptions& options)
    : p_(problem),
      options_(options),
      tables_(tables),
      layers_(problem.costs.stage().layers()),
      rounds_(problem.microbatches - 1),
      charge_matters_(problem.goal.charge_matters()),
      egress_matters_(charge_matters_ && tables.egress().matters()),
      once_s_(problem.costs.stage().least_compute_s(0, layers_)),
      accepted_s_(kNever),
      accepted_charge_(kNever),
      capacity_(capacity),
      left_(capacity),
      nothing_(capacity.size(), 0),
      levels_(options.most_levels),
      left_of_behind_(capacity) {
  if (egress_matters_) egress_prices_ = tables.egress().prices(problem.replicas, problem.microbatches);
}

double CompletionBound::priced_per_s(const double* used, const double* more, size_t limits) const {
  double most = 0;
  for (size_t limit = 0; limit < limits; ++limit)
    if (const std::optional<double>& credit = p_.limits[limit].credit_per_s)
      most = std::max(most, p_.replicas * (used[limit] + more[limit]) - *credit);
  return most;
}

void CompletionBound::accept(double iteration_s, double charge) {
  accepted_charge_ = charge;
  // Every iteration is paid for, by the cheapest GPUs at least.
  double least_charge_per_s = kNever;
  for (int o : p_.costs.stage().options())
    least_charge_per_s = std::min(least_charge_per_s, p_.costs.resources().options[o].rate.idle_per_s);
  if (charge_matters_ && least_charge_per_s > 0)
    iteration_s = std::min(iteration_s, charge / (least_charge_per_s * p_.replicas) * (1 + kLoose));
  accepted_s_ = iteration_s;
  levels_in_use_ = 0;
  if (!std::isfinite(accepted_s_) || rounds_ <= 0) return;
  // Each layer is computed once outside the rounds.
  const double most_s = (accepted_s_ - once_s_) / rounds_;
  if (floor_s_ == 0) floor_s_ = tables_.bottleneck_floor_s(capacity_, most_s);
  if (most_s < floor_s_) return;
  const double range = std::log(std::max(most_s, 1e-300) / std::max(floor_s_, 1e-300));
  const int levels =
      std::clamp(static_cast<int>(std::ceil(range / kLevel)), 1, static_cast<int>(options_.most_levels));
  levels_in_use_ = static_cast<size_t>(levels);
  for (int k = 0; k < levels; ++k) {
    Level& level = levels_[k];
    level.ready = level.dead = false;
    level.longest_s = most_s * std::exp(-range * k / levels);
    level.shortest_s = most_s * std::exp(-range * (k + 1) / levels);
  }
}

void CompletionBound::prepare(Level& level) {
  level.ready = true;
  if (!level.suffix) {
    level.suffix =
        std::make_unique<SuffixResourceBound>(p_.costs, tables_.uses(), tables_.sync(p_.replicas),
                                              options_.in_flight, options_.limits, charge_matters_);
    level.sum = std::make_unique<LeastSum>(p_.costs, tables_.uses(), capacity_, options_.priced_limits);
  }
  level.dead = true;
  const auto whole_possible = [&] { return level.suffix->possible(layers_, 1, false, capacity_.data()); };
  double sync_s = left_for_sync_s(level, once_s_);
  if (sync_s < 0) return;
  // What stages take in sum leaves less for gradients, which makes stages shorter, and so on.
  level.suffix->set_limits(level.longest_s, sync_s);
  if (!whole_possible()) return;
  for (int step = 0; step < options_.sync_steps; ++step) {
    level.sum->update(*level.suffix);
    const double left_s =
        left_for_sync_s(level, std::max(once_s_, level.sum->seconds(layers_, capacity_.data())));
    if (left_s < 0) return;
    if (left_s >= sync_s * (1 - kWorthwhile)) break;
    sync_s = left_s;
    level.suffix->set_limits(level.longest_s, sync_s);
  }
  level.dead = !whole_possible();
}

double CompletionBound::charge_per_s(const PartialPipeline& whole) const {
  return std::max(whole.charge_per_s, priced_per_s(whole.used, nothing_.data(), nothing_.size()));
}

double CompletionBound::fixed_charge(const PartialPipeline& whole) const {
  if (!egress_matters_) return whole.fixed_charge;
  return std::max(whole.fixed_charge,
                  tables_.egress().charge(egress_prices_, whole.used, nothing_.data(), nothing_.size()));
}

void CompletionBound::set_behind(const PartialPipeline& behind) {
  behind_ = &behind;
  behind_in_.clear();
  any_behind_ = !std::isfinite(accepted_s_) || rounds_ <= 0;
  if (any_behind_) return;
  for (size_t limit = 0; limit < capacity_.size(); ++limit)
    left_of_behind_[limit] = capacity_[limit] - behind.used[limit];
  for (size_t k = 0; k < levels_in_use_; ++k) {
    Level& level = levels_[k];
    if (level.longest_s * (1 + kLoose) < behind.slowest_s()) break;
    if (!level.ready) prepare(level);
    if (!level.dead) behind_in_.push_back(level.suffix.get());
  }
}

bool CompletionBound::stage_possible(int placement, const StageUse& use, int lowest, int highest) {
  if (any_behind_) return true;
  for (SuffixResourceBound* suffix : behind_in_) {
    // The longest stage leaves least to those before it.
    const int first =
        std::max(lowest, suffix->lowest_in_time(placement, behind_->first_layer, behind_->stages > 0));
    if (first > highest) continue;
    const double* need = suffix->need(first, behind_->stages + 2, true);
    const auto enough = [&](size_t limit) {
      return suffices(need[limit] + use.weights[limit], left_of_behind_[limit]);
    };
    size_t limit = 0;
    while (limit < suffix->limits() && enough(limit)) ++limit;
    if (limit == suffix->limits()) return true;
  }
  return false;
}

bool CompletionBound::affordable(const PartialPipeline& pipeline, double iteration_s,
                                 double rest_charge_per_s, double all_charge_per_s, double egress_charge) {
  if (!charge_matters_) return true;
  const double gpus_charge =
      p_.microbatches * p_.replicas * p_.costs.stage().least_charge(0, pipeline.first_layer);
  const double charge =
      std::max(pipeline.fixed_charge, egress_charge) +
      std::max(iteration_s * std::max(pipeline.charge_per_s + rest_charge_per_s, all_charge_per_s),
               iteration_s * pipeline.charge_per_s + gpus_charge);
  if (charge <= accepted_charge_ * (1 + kLoose)) return true;
  money_mattered_ = true;
  return false;
}

bool CompletionBound::possible_in(Level& level, const PartialPipeline& pipeline, double least_s) {
  const int first = pipeline.first_layer, in_flight = pipeline.stages + 1;
  const bool behind = pipeline.stages > 0;
  const double known_s =
      rounds_ * std::max(pipeline.slowest_s(), level.shortest_s) + pipeline.once_s() + pipeline.sync_s;
  if (known_s + least_s >= accepted_s_) return false;
  if (!level.suffix->possible(first, in_flight, behind, left_.data())) return false;
  const double level_s = known_s + std::max(least_s, level.sum->seconds(first, left_.data()));
  if (level_s >= accepted_s_) return false;
  if (!charge_matters_) return true;
  const size_t limits = level.suffix->limits();
  const double* need = level.suffix->need(first, in_flight, behind);
  const double egress_charge =
      egress_matters_ ? tables_.egress().charge(egress_prices_, pipeline.used, need, limits) : 0;
  return affordable(pipeline, level_s, p_.replicas * level.suffix->charge_per_s(first, in_flight, behind),
                    priced_per_s(pipeline.used, need, limits), egress_charge);
}

bool CompletionBound::possible(const PartialPipeline& pipeline) {
  const double least_s = p_.costs.stage().least_compute_s(0, pipeline.first_layer);
  const double iteration_s =
      rounds_ * std::max(pipeline.slowest_s(), floor_s_) + pipeline.once_s() + least_s + pipeline.sync_s;
  if (iteration_s >= accepted_s_ || !affordable(pipeline, iteration_s, 0, 0, 0)) return false;
  if (!std::isfinite(accepted_s_) || rounds_ <= 0) return true;
  for (size_t limit = 0; limit < capacity_.size(); ++limit)
    left_[limit] = capacity_[limit] - pipeline.used[limit];
  for (size_t k = 0; k < levels_in_use_; ++k) {
    Level& level = levels_[k];
    if (level.longest_s * (1 + kLoose) < pipeline.slowest_s()) break;
    if (!level.ready) prepare(level);
    if (!level.dead && possible_in(level, pipeline, least_s)) return true;
  }
  return false;
}

}  // namespace sailor
