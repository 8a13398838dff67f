// Bounds and plans for clusters with too many types and zones to list partial pipelines
// (template_search.h). Published model, throughput.
//
// Best first over boxes: one configuration (microbatch, D), and intervals of the slowest stage and of the
// longest sum of gradients. Within a box an iteration takes at least
//     rounds x shortest + least sum of gradients + the sum of stages in priced cuts (priced_cuts.h)
//     + what messages between the regions that the box requires take more
// with prices by subgradients. It branches on the regions that stages are in, then on the intervals. On the
// way a beam of partial pipelines is followed that fill what supplies there are, in the order of what they
// and the priced rest take. Ends when no box can be better, or after a fixed number of priced cuts:
// deterministic, whatever the machine. Pure.
#pragma once

#include <functional>
#include <vector>

#include "planner/search/costs/class_costs.h"
#include "planner/search/costs/pipeline_template.h"

namespace sailor {

struct BranchConfiguration {
  ClassCosts* costs = nullptr;
  int replicas = 1;
  double rounds = 1;   // microbatches of a pipeline
  double bound_s = 0;  // known already; sharpened
};

struct BranchOutcome {
  bool complete = true;  // false: stopped, by effort or time
  int64_t priced = 0;    // cuts
};

// Calls `found` with pipeline templates that may be better than `threshold()`, which it usually lowers. On
// return every configuration's bound_s holds.
BranchOutcome branch_and_bound(
    std::vector<BranchConfiguration>& configurations, const std::function<double()>& threshold,
    const std::function<void(const BranchConfiguration&, const PipelineTemplate&)>& found,
    const std::function<bool()>& expired);

}  // namespace sailor
