// Bounds and plans for clusters with too many types and zones to list partial pipelines
// (template_search.h). Published model, throughput.
//
// Best first over boxes: one configuration (microbatch, D), and intervals of the slowest stage and of the
// longest gradient reduction. Within a box an iteration takes at least
//
//     rounds x shortest + least gradient reduction + the sum of stages in priced cuts (priced_cuts.h)
//     + the additional time of messages between the regions that the box requires
//
// with prices by subgradients. It branches on the regions of stages, then on the intervals. A beam search of
// partial pipelines that fill the real supplies runs along, ordered by their time and the priced rest. Ends
// when no box can be better, or after a fixed number of priced cuts, so it is deterministic on every machine.
// Pure.
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
  double bound_s = 0;  // known before; improved by the search
};

struct BranchOutcome {
  bool complete = true;  // false: stopped, by effort or time
  int64_t priced = 0;    // number of priced cuts
};

// Calls `found` with pipeline templates that may be better than `threshold()`, which it usually lowers. On
// return, bound_s of every configuration holds.
BranchOutcome branch_and_bound(
    std::vector<BranchConfiguration>& configurations, const std::function<double()>& threshold,
    const std::function<void(const BranchConfiguration&, const PipelineTemplate&)>& found,
    const std::function<bool()>& expired);

}  // namespace sailor
