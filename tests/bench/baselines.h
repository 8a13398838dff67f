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
  double iter_per_s = 0;
  double usd_per_iter = 0;
};

// Rows without a plan are left out. Nothing when the file is not there; throws InputError.
std::vector<Baseline> load_baselines(const std::string& path);

// How a plan stands against the baselines of its scenario.
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
