// Does a search over more GPUs ever find a slower plan? Plans random problems, and each of them without one
// node of every GPU type in every zone, and without all nodes of every type, and compares: a plan for the
// smaller cluster is one for the larger.
//
//   bench_planner --native --adjacent --seed S --count N [--gpus MAX] [--types T] [--zones Z] [--only I]
//     [--links drawn|catalog]
//
// CSV on stdout, a row for each pair of clusters; a summary on stderr.
#pragma once

#include "tests/bench/native/native_bench.h"

namespace sailor::bench {

// Returns 0, or 1 when a larger cluster has a slower plan. Throws InputError on a broken catalog.
int run_adjacent(const NativeOptions& options);

}  // namespace sailor::bench
