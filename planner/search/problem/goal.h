// What a search minimizes, within the user's limits. Value type.
#pragma once

#include <cmath>
#include <limits>

#include "planner/spec/job_spec.h"

namespace sailor {

struct Goal {
  Objective objective = Objective::throughput;
  double max_usd = 0;          // infinite when there is no limit
  double max_iteration_s = 0;  // infinite when there is no limit

  double value(double iteration_s, double usd) const {
    return objective == Objective::throughput ? iteration_s : usd;
  }
  // Infinite when a limit is not met.
  double allowed_value(double iteration_s, double usd) const {
    return iteration_s <= max_iteration_s && usd <= max_usd ? value(iteration_s, usd)
                                                            : std::numeric_limits<double>::infinity();
  }
  // Is cost the objective, or is there a budget?
  bool cost_matters() const { return objective == Objective::cost || std::isfinite(max_usd); }
};

inline Goal goal_of(const JobSpec& job) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  return {job.objective, job.constraints.max_usd_per_iteration.value_or(kNever),
          job.constraints.min_iterations_per_s ? 1.0 / *job.constraints.min_iterations_per_s : kNever};
}

}  // namespace sailor
