// The native search in a process of its own, so that CPU time is that of one search.
#pragma once

#include "tests/bench/native/native_bench.h"

namespace sailor::bench {

struct Searched {
  double iteration_s = 0;  // 0: there is no plan
  double bound_s = 0;      // 0: no bound is known
  double cpu_s = 0;
  int nodes = 0;  // that the plan uses
};

Searched searched(const Inputs& inputs, const PlanFeatures& allow, const NativeOptions& options);

}  // namespace sailor::bench
