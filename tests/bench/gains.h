// The gain of the search space `full` over `paper` under the native cost model, in total and by feature: each
// alone, and all but each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/reference_data.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

struct GainOptions {
  double time_limit_s = 10;
  double memory = 1;  // of every GPU, as a fraction of that in the data pack
};

// The columns of a line: scenario, memory, objective of `paper` and of `full` with all features, its gain in
// per cent of `paper`'s, of each feature alone, of all but each; then the plan.
std::string gains_header();
// One scenario, all of its searches in this process. `complete`: none of them was stopped; `monotone`: no
// search of a wider space found a worse plan than one of a narrower space.
struct Gains {
  std::string csv;
  bool complete = true;
  bool monotone = true;
};
Gains gains_of(const Scenario& scenario, Inputs inputs, const GainOptions& options);

// Scenarios whose GPUs are of several types.
bool is_mixed(const Scenario& scenario);

}  // namespace sailor::bench
