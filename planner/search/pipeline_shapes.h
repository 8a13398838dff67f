// Shapes of single pipelines, for plans whose pipelines differ: cuts with one replica per stage, by what they
// use and by how long their gradients take to sum. Times are sums of the search, not the timeline. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "planner/search/layout.h"
#include "planner/search/mode_costs.h"

namespace sailor {

// One pipeline: what it uses and how fast it is.
struct Shape {
  Layout cut;  // one replica per stage
  double estimate_s = 0;
  std::vector<int> use;
  double bottleneck_s = 0;
  double fill_s = 0;  // one microbatch alone

  int microbatches_in(double target_s) const {
    if (target_s < fill_s) return 0;
    return bottleneck_s > 0
               ? static_cast<int>(std::min(1e9, std::floor((target_s - fill_s) / bottleneck_s))) + 1
               : 1;
  }
  double time_s(int microbatches) const { return fill_s + (microbatches - 1) * bottleneck_s; }
};

// Is there no more of any counter in `a` than in `b`?
bool within(const std::vector<int>& a, const std::vector<int>& b);

// The best shape by what it uses, and by how long its gradients take to sum, in steps of sqrt(2).
using ShapeTable = std::map<std::pair<std::vector<int>, int>, Shape>;

// Good shapes for pipelines that take about `share` microbatches, of about so many `pipelines`. `expired` is
// polled: what was found until then is returned.
ShapeTable pipeline_shapes(const Resources& resources, ModeCosts& modes, double share, int pipelines,
                           const std::function<bool()>& expired);

// Shapes whose sums take at most `step`, and that no other of them beats with the same resources or less; the
// few that take least GPU time for a microbatch, those first.
std::vector<Shape> shapes_up_to(const ShapeTable& table, int step, const Resources& resources,
                                const StageCosts& costs);

}  // namespace sailor
