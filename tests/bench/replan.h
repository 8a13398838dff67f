// Planning again after a cluster lost or gained nodes: from the plan of before against from nothing.
#pragma once

#include <string>
#include <vector>

#include "planner/search/search.h"
#include "tests/bench/reference_data.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

struct ReplanOptions {
  double time_limit_s = 10;        // from nothing
  double again_time_limit_s = 10;  // from the plan of before
  int candidates = 16;             // of the plan of before
  double part = 0.1;               // of the nodes come or go
  uint64_t seed = 1;               // which ones
};

std::string replan_header();
// A line for losing nodes and one for gaining them. `worse`: planning again, with as much time, found
// a worse plan than planning from nothing did.
struct Replans {
  std::vector<std::string> csv;
  double slowest_ms = 0;
  bool worse = false;
};
Replans replan(const Scenario& scenario, const Inputs& inputs, CostModel model, const ReplanOptions& options);

}  // namespace sailor::bench
