// Compares the native search with every plan of tiny problems:
//
//   oracle --cost-model native --seed S --count N [--gpus 8] [--types 2] [--zones 2] [--layers 6]
//   [--simulations 200000]
//
// CSV on stdout, a row for each instance: the columns of the published model's oracle, then worse_pct (ours
// relative to the optimum), the number of simulated plans, and whether the enumeration finished. An instance
// fails if ours is worse than the optimum by more than 0.5 %, if there is a plan and the search has none, if
// ours is invalid, or if the bound is above the optimum (1e-9 relative). If the enumeration did not finish,
// its best plan counts as the optimum, and can still fail an instance.
#pragma once

#include <string>

#include "tests/oracle/native/instance.h"

namespace sailor::oracle {

struct NativeOracleOptions {
  uint64_t seed = 1;
  int count = 1, only = -1;
  NativeLimits limits;
  double time_limit_s = 10;
  int64_t simulations = 200'000;  // of an enumeration, at most
  int details = 20;               // failing rows to describe on stderr
  std::string catalog;
  std::string dump;  // with `only`: directory for the plans
};

// Returns 0, or 1 when an instance fails. Throws InputError on a broken catalog.
int run_native_oracle(const NativeOracleOptions& options);

}  // namespace sailor::oracle
