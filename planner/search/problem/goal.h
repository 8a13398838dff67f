// The value that a search minimizes, within the user's limits. Value type.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "planner/spec/job_spec.h"

namespace sailor {

// Time or cost of what is not possible.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

// Reason of plans that a floor of the throughput refuses.
inline constexpr char kThroughputFloor[] = "throughput floor";

// Engines that track one expense in addition to time track `expense()`; its value is called charge.
struct Goal {
  Objective objective;
  double max_iteration_s = kNever;   // infinite when there is no limit
  PerExpense<double> most = none();  // the same, per iteration

  // The expense that is minimized or limited; nothing: only time matters.
  std::optional<Expense> expense() const {
    if (objective.expense()) return objective.expense();
    for (const Expense expense : kExpenses)
      if (std::isfinite(most[expense])) return expense;
    return std::nullopt;
  }
  // Is it minimized or limited?
  bool carries(Expense of) const { return objective == Objective(of) || std::isfinite(most[of]); }
  bool charge_matters() const { return expense().has_value(); }
  // The expense of charges and bounds: cost if only time matters.
  Expense followed() const { return expense().value_or(Expense::cost); }
  double max_charge() const { return most[followed()]; }

  double value(double iteration_s, double charge) const { return objective.expense() ? charge : iteration_s; }
  // Infinite if a limit is not met.
  double allowed_value(double iteration_s, double charge) const {
    return iteration_s <= max_iteration_s && charge <= max_charge() ? value(iteration_s, charge) : kNever;
  }
  // The same from all quantities of an iteration.
  double value(const Figures& figures) const { return objective.value(figures); }
  double allowed_value(const Figures& figures) const {
    return figures.iteration_s <= max_iteration_s && !exceeded(figures) ? value(figures) : kNever;
  }
  // All limits: what each limits, and the reason that counts the plans it refuses (SearchResult::rejected).
  std::vector<std::pair<Objective, const char*>> limits() const {
    std::vector<std::pair<Objective, const char*>> out;
    if (std::isfinite(max_iteration_s)) out.emplace_back(Objective::throughput, kThroughputFloor);
    for (const Expense expense : kExpenses)
      if (std::isfinite(most[expense])) out.emplace_back(expense, kind_of(expense).limit);
    return out;
  }
  // The first limit on an expense that is not met.
  std::optional<Expense> exceeded(const Figures& figures) const {
    for (const Expense expense : kExpenses)
      if (figures.spent[expense] > most[expense]) return expense;
    return std::nullopt;
  }
  bool limits_expenses() const {
    return std::any_of(kExpenses.begin(), kExpenses.end(),
                       [&](Expense expense) { return std::isfinite(most[expense]); });
  }

 private:
  static PerExpense<double> none() {
    PerExpense<double> out;
    for (const Expense expense : kExpenses) out[expense] = kNever;
    return out;
  }
};

inline Goal goal_of(const JobSpec& job) {
  Goal goal;
  goal.objective = job.objective;
  if (job.constraints.min_iterations_per_s)
    goal.max_iteration_s = 1.0 / *job.constraints.min_iterations_per_s;
  for (const Expense expense : kExpenses) goal.most[expense] = job.constraints.most[expense].value_or(kNever);
  return goal;
}

}  // namespace sailor
