// Random problems: physically plausible, and rich enough that every part of a plan matters somewhere.
//
// Varied: different or nearly equal GPU types; zones of one region or several; small nodes, some with busy
// GPUs; memory from ample to so tight that it forces depth or mixing; embedding, head and blocks of different
// weight; cells that were not profiled; links by zone, type and number of GPUs, as fits (some with decreasing
// rate) or as points, sometimes different by direction; prices, egress, quotas. A problem only depends on its
// seed.
#pragma once

#include "tests/oracle/problem.h"

namespace sailor::oracle {

// Maxima of a problem.
struct Limits {
  int types = 3;
  int zones = 2;
  int gpus = 12;   // free ones
  int layers = 8;  // embedding and head included; at least 3
};

Problem generate(uint64_t seed, const Limits& limits);

// Instance `number` of a run's seed.
uint64_t instance_seed(uint64_t seed, int number);

}  // namespace sailor::oracle
