// What other planners find on the scenarios (the columns of the reference pack's baselines.csv), and whether
// a plan is better.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/scenario.h"

namespace sailor::bench {

constexpr double kTolerance = 5e-5;  // relative, when plans are compared: files give five digits

struct Baseline {
  std::string planner, scenario, note;
  double iter_per_s = 0;  // 0 = it found no valid plan
  double usd_per_iter = 0;
  std::string gpus = {};  // that its plan uses
  std::optional<double> search_cpu_s = {};
  std::optional<double> plans_out_of_memory = {};  // before the first that fits
};

// Nothing when the file is not there; throws InputError.
std::vector<Baseline> load_baselines(const std::string& path);

// How a plan stands against one baseline of its scenario.
enum class Against {
  reached,         // as good or better
  missed,          // worse
  noted,           // not counted: the file says that the published simulator scores the baseline too well
  outside_limits,  // the baseline's plan breaks the scenario's own limits: no answer to the same question
  no_plan          // the baseline found none
};
Against against(const Scenario& scenario, const Baseline& baseline, double iter_per_s, double usd_per_iter);
// Is a plan of this throughput and cost as good, within kTolerance? iter_per_s 0 = no plan.
bool reaches(const Scenario& scenario, const Baseline& baseline, double iter_per_s, double usd_per_iter);

// How a plan stands against all baselines of its scenario.
struct Standing {
  int beaten = 0;
  int compared = 0;                 // without those that have a note or break the scenario's own limits
  int noted = 0;                    // the file says that the published simulator scores them too well
  std::vector<std::string> better;  // those that the plan does not reach: one line each
  std::vector<std::string> noted_better;
};
// Of a plan of this throughput and cost; iter_per_s 0 = no plan.
Standing stand(const Scenario& scenario, const std::vector<Baseline>& baselines, double iter_per_s,
               double usd_per_iter);

}  // namespace sailor::bench
