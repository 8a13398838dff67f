// Results of other planners on the scenarios (the columns of the reference pack's baselines.csv), and
// comparisons with them.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/scenario.h"

namespace sailor::bench {

constexpr double kTolerance = 5e-5;  // relative, for comparing plans: files have five digits

struct Baseline {
  std::string planner, scenario, note;
  double iter_per_s = 0;  // 0 = it found no valid plan
  double usd_per_iter = 0;
  std::string gpus = {};  // used by its plan
  std::optional<double> search_cpu_s = {};
  std::optional<double> plans_out_of_memory = {};  // before the first that fits
};

// Empty if the file does not exist; throws InputError.
std::vector<Baseline> load_baselines(const std::string& path);

// How a plan compares with one baseline of its scenario.
enum class Against {
  reached,         // as good or better
  missed,          // worse
  noted,           // not counted: according to the file, the published simulator scores the baseline too well
  outside_limits,  // the baseline's plan violates the scenario's limits: not comparable
  no_plan          // the baseline found none
};
Against against(const Scenario& scenario, const Baseline& baseline, double iter_per_s, double usd_per_iter);
// Is a plan of this throughput and cost as good, within kTolerance? iter_per_s 0 = no plan.
bool reaches(const Scenario& scenario, const Baseline& baseline, double iter_per_s, double usd_per_iter);

// How a plan compares with all baselines of its scenario.
struct Standing {
  int beaten = 0;
  int compared = 0;                 // without those with a note or outside the scenario's limits
  int noted = 0;                    // according to the file, the published simulator scores them too well
  std::vector<std::string> better;  // those that are better than the plan: one line each
  std::vector<std::string> noted_better;
};
// For a plan of this throughput and cost; iter_per_s 0 = no plan.
Standing stand(const Scenario& scenario, const std::vector<Baseline>& baselines, double iter_per_s,
               double usd_per_iter);

}  // namespace sailor::bench
