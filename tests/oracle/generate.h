// Random problems: physically plausible, and rich enough that every part of a plan matters somewhere.
//
// What varies: unlike or nearly equal GPU types; zones of one region or of several; small nodes, some with
// busy GPUs; memory from roomy to so tight that it forces depth or mixing; embedding, head and blocks of
// unlike weight; cells that were not profiled; links by zone, type and number of GPUs, as fits (some of
// falling rate) or as points, sometimes with unlike directions; prices, egress, quotas. A problem depends on
// nothing but its seed.
#pragma once

#include "tests/oracle/problem.h"

namespace sailor::oracle {

// Maxima: a problem has up to so many.
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
