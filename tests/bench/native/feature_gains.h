// What each feature of plans (planner/plan/features.h) brings: plans random problems with all of them, and
// with all but each.
//
//   bench_planner --native --gains --seed S --count N [--gpus MAX] [--types T] [--zones Z] [--only I]
//     [--links drawn|catalog]
//
// CSV on stdout, a row for each problem: the iteration with all features, the gap to its bound, CPU time, and
// for each feature by how many per cent plans are slower without it; `new` where there is none without. A
// summary by feature on stderr.
#pragma once

#include "tests/bench/native/native_bench.h"

namespace sailor::bench {

// Returns 0, or 1 when there is a faster plan without a feature, beyond what a search of limited effort
// leaves to chance. Throws InputError on a broken catalog.
int run_feature_gains(const NativeOptions& options);

}  // namespace sailor::bench
