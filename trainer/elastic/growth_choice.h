// Which free nodes of the cluster a running job should take, if any. Pure: a question in, an answer out; run
// by the controller in a thread of its own, because it searches several times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/snapshot.h"
#include "trainer/elastic/replanner.h"

namespace sailor {

struct GrowthQuestion {
  Replanner replanner;             // knows the job's own nodes
  Plan plan;                       // in force
  std::vector<LiveGpu> gpus;       // that have a process
  std::vector<SnapshotNode> free;  // nodes that the job could get now
  std::optional<int> most_new;     // nodes that it may take; nothing = no limit
  double iteration_s = 0;          // measured under the plan in force
  int64_t steps_left = 0;
  std::optional<double> time_left_s;  // until the job's time limit
  double change_s = 0;                // for which training stands still when the plan changes
};

struct GrowthAnswer {
  // Nodes to take, with those of their GPUs that the plan uses as the free ones. Empty = none is worth it.
  std::vector<SnapshotNode> nodes;
  double iteration_s = 0;  // with them, from what was measured and what is predicted; 0 = no plan uses any
  std::string why;         // one line: what they bring, or why none is worth it
};

GrowthAnswer choose_growth(const GrowthQuestion& question);

// Does a change pay that stops training for `change_s` and then makes an iteration last `then_s` instead of
// `now_s`, with so many steps left, or as many as the time left allows? It must bring 2 % more than nothing.
bool pays_in_time(double now_s, double then_s, double change_s, int64_t steps_left,
                  std::optional<double> time_left_s);

}  // namespace sailor
