#include "planner/search/bounds/completion_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLoose = 1e-9;  // relative; for sums in another order
constexpr int kSyncSteps = 1;
// By so much has the time for gradients to fall before stages are limited anew.
constexpr double kWorthIt = 0.01;
constexpr double kLevel = 0.03;  // between levels, when that many suffice
constexpr size_t kMostLevels = 4, kCoarseLevels = 2;
// Memory beyond that many microbatches, and limits beyond the first, cost more time than they prune; the
// first are the most binding.
constexpr int kCoarseInFlight = 4, kFineInFlight = 8;
constexpr size_t kCoarseLimits = 8, kFineLimits = 16;
constexpr size_t kPriced = 4, kCoarsePriced = 2;  // limits that have a price
}  // namespace

CompletionBound::CompletionBound(const TemplateProblem& problem, BoundTables& tables,
                                 const std::vector<double>& capacity, bool coarse)
    : p_(problem),
      tables_(tables),
      sync_(tables.sync(problem.replicas)),
      layers_(problem.costs.stage().layers()),
      rounds_(problem.microbatches - 1),
      cost_matters_(problem.goal.objective == Objective::cost || std::isfinite(problem.goal.max_usd)),
      coarse_(coarse),
      egress_matters_(cost_matters_ && tables.egress().matters()),
      accepted_s_(kNever),
      accepted_usd_(kNever),
      capacity_(capacity),
      left_(capacity),
      nothing_(capacity.size(), 0),
      levels_(coarse ? kCoarseLevels : kMostLevels),
      left_of_behind_(capacity) {
  if (egress_matters_) egress_prices_ = tables.egress().prices(problem.replicas, problem.microbatches);
}

std::unique_ptr<SuffixResourceBound> CompletionBound::new_suffix_bound(bool coarse) {
  const int most_in_flight = coarse ? kCoarseInFlight : kFineInFlight;
  return std::make_unique<SuffixResourceBound>(p_.costs, tables_.uses(), sync_, p_.replicas, most_in_flight,
                                               coarse ? kCoarseLimits : kFineLimits, cost_matters_);
}

double CompletionBound::priced_usd_per_s(const double* used, const double* more, size_t limits) const {
  double most = 0;
  for (size_t limit = 0; limit < limits; ++limit)
    if (const std::optional<double>& credit = p_.limits[limit].credit_usd_per_s)
      most = std::max(most, p_.replicas * (used[limit] + more[limit]) - *credit);
  return most;
}

bool CompletionBound::whole_possible(SuffixResourceBound& suffix) {
  return suffix.possible(layers_, 1, false, capacity_.data());
}

void CompletionBound::accept(double iteration_s, double usd) {
  accepted_usd_ = usd;
  // Every iteration is paid for, by the cheapest GPUs at least.
  double least_usd_per_s = kNever;
  for (int o : p_.costs.stage().options())
    least_usd_per_s = std::min(least_usd_per_s, p_.costs.resources().options[o].usd_per_s);
  if (cost_matters_ && least_usd_per_s > 0)
    iteration_s = std::min(iteration_s, usd / (least_usd_per_s * p_.replicas) * (1 + kLoose));
  if (iteration_s == accepted_s_ && accepted_s_ == kNever) return;
  accepted_s_ = iteration_s;
  levels_in_use_ = 0;
  if (!std::isfinite(accepted_s_) || rounds_ <= 0) return;
  // Each layer is computed once outside the rounds.
  const double most_s = (accepted_s_ - p_.overhead_s - once_s()) / rounds_;
  if (floor_s_ == 0) floor_s_ = tables_.bottleneck_floor_s(capacity_, p_.replicas, most_s);
  if (most_s < floor_s_) return;
  const double range = std::log(std::max(most_s, 1e-300) / std::max(floor_s_, 1e-300));
  const int levels =
      std::clamp(static_cast<int>(std::ceil(range / kLevel)), 1, static_cast<int>(levels_.size()));
  levels_in_use_ = static_cast<size_t>(levels);
  for (int k = 0; k < levels; ++k) {
    Level& level = levels_[k];
    level.ready = level.dead = false;
    level.longest_s = most_s * std::exp(-range * k / levels);
    level.shortest_s = most_s * std::exp(-range * (k + 1) / levels);
  }
}

// What whole pipelines sum gradients for at least, when stages are as short as that.
double CompletionBound::least_sync_s(double bottleneck_s, double most_s) {
  double low = 0, high = most_s;
  for (int step = 0; step < kSyncSteps; ++step) {
    const double middle = (low + high) / 2;
    probe_->set_limits(bottleneck_s, middle);
    (whole_possible(*probe_) ? high : low) = middle;
  }
  return low;
}

void CompletionBound::prepare(Level& level) {
  level.ready = true;
  if (!level.suffix) {
    level.suffix = new_suffix_bound(coarse_);
    level.sum =
        std::make_unique<LeastSum>(p_.costs, tables_.uses(), capacity_, coarse_ ? kCoarsePriced : kPriced);
  }
  if (!probe_) probe_ = new_suffix_bound(true);
  level.dead = true;
  double sync_s = left_for_sync_s(level, once_s());
  if (sync_s < 0) return;
  probe_->set_limits(level.longest_s, sync_s);
  if (!whole_possible(*probe_)) return;
  // What stages take in sum leaves less for gradients, which makes stages shorter, and so on.
  level.suffix->set_limits(level.longest_s, sync_s);
  for (int step = 0; step < (coarse_ ? 1 : 2); ++step) {
    level.sum->update(*level.suffix);
    const double left_s =
        left_for_sync_s(level, std::max(once_s(), level.sum->seconds(layers_, capacity_.data())));
    if (left_s < 0) return;
    if (left_s >= sync_s * (1 - kWorthIt)) break;
    sync_s = left_s;
    level.suffix->set_limits(level.longest_s, sync_s);
  }
  if (!whole_possible(*level.suffix)) return;
  level.dead = false;
  level.least_sync_s = p_.replicas > 1 ? least_sync_s(level.longest_s, sync_s) : 0;
}

double CompletionBound::usd_per_s(const PartialPipeline& whole) const {
  return std::max(whole.usd_per_s, priced_usd_per_s(whole.used, nothing_.data(), nothing_.size()));
}

double CompletionBound::transfer_usd(const PartialPipeline& whole) const {
  if (!egress_matters_) return whole.transfer_usd;
  return std::max(whole.transfer_usd,
                  tables_.egress().usd(egress_prices_, whole.used, nothing_.data(), nothing_.size()));
}

void CompletionBound::set_behind(const PartialPipeline& behind) {
  behind_ = behind;
  behind_in_.clear();
  any_behind_ = !std::isfinite(accepted_s_) || rounds_ <= 0;
  if (any_behind_) return;
  for (size_t limit = 0; limit < capacity_.size(); ++limit)
    left_of_behind_[limit] = capacity_[limit] - behind.used[limit];
  for (size_t k = 0; k < levels_in_use_; ++k) {
    Level& level = levels_[k];
    if (level.longest_s * (1 + kLoose) < behind.bottleneck_s) break;
    if (!level.ready) prepare(level);
    if (!level.dead) behind_in_.push_back(level.suffix.get());
  }
}

bool CompletionBound::stage_possible(int placement, const StageUse& use, int lowest, int highest) {
  if (any_behind_) return true;
  for (SuffixResourceBound* suffix : behind_in_) {
    // The longest stage leaves least to those before it.
    const int first =
        std::max(lowest, suffix->lowest_in_time(placement, behind_.first_layer, behind_.behind));
    if (first > highest) continue;
    const double* need = suffix->need(first, behind_.in_flight + 1, true);
    const auto enough = [&](size_t limit) {
      return suffices(need[limit] + use.weights[limit], left_of_behind_[limit]);
    };
    if (!enough(last_short_)) continue;
    size_t limit = 0;
    while (limit < suffix->limits() && enough(limit)) ++limit;
    if (limit == suffix->limits()) return true;
    last_short_ = limit;
  }
  return false;
}

double CompletionBound::least_value(const PartialPipeline& pipeline, bool any) {
  const StageCosts& stage = p_.costs.stage();
  const bool throughput = p_.goal.objective == Objective::throughput;
  const double least_s = stage.least_compute_s(0, pipeline.first_layer);
  const double gpus_usd =
      cost_matters_ ? p_.microbatches * p_.replicas * stage.least_usd(0, pipeline.first_layer) : 0;
  const auto usd_of = [&](double iteration_s, double rest_usd_per_s, double all_usd_per_s,
                          double egress_usd) {
    return std::max(pipeline.transfer_usd, egress_usd) +
           std::max(iteration_s * std::max(pipeline.usd_per_s + rest_usd_per_s, all_usd_per_s),
                    iteration_s * pipeline.usd_per_s + gpus_usd);
  };
  const double iteration_s = p_.overhead_s + rounds_ * std::max(pipeline.bottleneck_s, floor_s_) +
                             pipeline.sum_s + least_s + pipeline.sync_s;
  if (iteration_s >= accepted_s_) return kNever;
  const double usd = cost_matters_ ? usd_of(iteration_s, 0, 0, 0) : 0;
  if (cost_matters_ && usd > accepted_usd_) {
    money_mattered_ = true;
    return kNever;
  }
  if (!std::isfinite(accepted_s_) || rounds_ <= 0) return throughput ? iteration_s : usd;
  for (size_t limit = 0; limit < capacity_.size(); ++limit)
    left_[limit] = capacity_[limit] - pipeline.used[limit];
  double least = kNever;
  for (size_t k = 0; k < levels_in_use_; ++k) {
    Level& level = levels_[k];
    if (level.longest_s * (1 + kLoose) < pipeline.bottleneck_s) break;
    if (!level.ready) prepare(level);
    if (level.dead) continue;
    const double known_s = p_.overhead_s + rounds_ * std::max(pipeline.bottleneck_s, level.shortest_s) +
                           pipeline.sum_s + std::max(pipeline.sync_s, level.least_sync_s);
    if (known_s + least_s >= accepted_s_) continue;
    if (throughput && known_s + least_s >= least) continue;
    if (!level.suffix->possible(pipeline.first_layer, pipeline.in_flight, pipeline.behind, left_.data()))
      continue;
    const double level_s =
        known_s + std::max(least_s, level.sum->seconds(pipeline.first_layer, left_.data()));
    if (level_s >= accepted_s_ || (throughput && level_s >= least)) continue;
    double value = level_s;
    if (cost_matters_) {
      const double* need = level.suffix->need(pipeline.first_layer, pipeline.in_flight, pipeline.behind);
      const double egress_usd =
          egress_matters_ ? tables_.egress().usd(egress_prices_, pipeline.used, need, level.suffix->limits())
                          : 0;
      const double level_usd = usd_of(
          level_s,
          p_.replicas * level.suffix->usd_per_s(pipeline.first_layer, pipeline.in_flight, pipeline.behind),
          priced_usd_per_s(pipeline.used, need, level.suffix->limits()), egress_usd);
      if (level_usd > accepted_usd_ * (1 + kLoose)) {
        money_mattered_ = true;
        continue;
      }
      if (!throughput) value = level_usd;
    }
    least = std::min(least, value);
    if (any) return least;
  }
  return least;
}

}  // namespace sailor
