// The native search on random problems against rivals that share no code with it:
//
//   bench_planner --native --seed S --count N [--gpus MAX] [--types T] [--zones Z]
//     [--rivals none|fast|all|hard]
//
// CSV on stdout, a row for each problem with the fastest of its rivals; failures, and a summary, on stderr.
// Each search, and the rivals of each problem, run in their own process, so that CPU time and peak memory are
// those of one search.
//
// Rivals are complete placed plans, and simulate() judges all of them:
//   uniform     every plan of one shape on each GPU type and on all (uniform_rivals.h)
//   hill climb  from ten random plans (hill_climb.h)
//   search      the search on parts of the cluster; with `all` with ten times the effort, and the whole
//               cluster too; with `fast` with a quarter of the effort (search_rivals.h)
//   published   with `all`: plans of the published model, judged by the native one
//   composed    with `hard`: a uniform shape for each type, side by side (uniform_rivals.h)
// With `hard` there are also hill climbs from the best of them and from the search's own plan, which measure
// the gain of local changes. With `none` there are only the search and its bound.
//
// A problem fails if a rival is faster by more than 1 %, if the search has no plan and a rival has one, if
// the plan is invalid, or if any plan is faster than the proven bound.
#pragma once

#include "tests/bench/native/random_problem.h"
#include "tests/bench/native/search_rivals.h"

namespace sailor::bench {

enum class Rivals { none, fast, all, hard };

struct NativeOptions {
  uint64_t seed = 1;
  int count = 1;
  int only = -1;  // this problem; -1 = all
  ProblemLimits limits;
  Rivals rivals = Rivals::all;
  SearchEffort effort;
  double search_effort = 1;  // factor on the effort of the tested search
  std::string catalog;       // file
  std::string dump;          // with `only`: directory for the problem, the plan and the best rival's
};

// Returns 0, or 1 when a problem fails. Throws InputError on a broken catalog.
int run_native(const NativeOptions& options);

}  // namespace sailor::bench
