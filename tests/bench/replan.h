// Compares replanning after a cluster lost or gained nodes with planning from scratch.
#pragma once

#include <string>
#include <vector>

#include "planner/search/search.h"
#include "tests/bench/reference_data.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

struct ReplanOptions {
  double time_limit_s = 10;        // from scratch
  double again_time_limit_s = 10;  // from the previous plan
  int candidates = 16;             // of the previous plan's search
  double part = 0.1;               // fraction of nodes lost or gained
  uint64_t seed = 1;               // which ones
};

std::string replan_header();
// One change of the cluster: planned from scratch, and replanned from the previous plans.
struct Replan {
  std::string event;                                 // "loss" or "gain"
  double from_nothing_ms = 0, again_ms = 0;          // wall time
  double from_nothing = 0, again = 0;                // value of the objective: seconds or USD; 0 = no plan
  std::string before_plan, from_nothing_plan, plan;  // summaries

  std::string csv(const Scenario& scenario, CostModel model) const;
};
// Losing and gaining nodes. `worse`: replanning with the same time found a worse plan than planning from
// scratch.
struct Replans {
  std::vector<Replan> events;
  double slowest_ms = 0;
  bool worse = false;
};
Replans replan(const Inputs& inputs, CostModel model, const ReplanOptions& options);

}  // namespace sailor::bench
