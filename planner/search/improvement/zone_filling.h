// Layouts that come from filling one zone after another with one stage after another, so that few stages lie
// in several zones: the order of the zones, the order in which the stages are put down (not the order of the
// pipeline) and the end at which each begins are searched. A start for improve_layout. Deterministic.
#pragma once

#include <functional>

#include "planner/search/improvement/pipeline_blocks.h"

namespace sailor {

// How good an arrangement is, less is better; `excess` as BlockCosts::excess.
using BlockEnergy = std::function<double(const BlockCosts::Score& score, double excess)>;

// The best arrangement found of a layout's replicas; empty when none fits.
PipelineBlocks fill_zones(const AssignmentProblem& problem, const Layout& layout, BlockCosts& costs,
                          const BlockEnergy& energy, int steps, const std::function<bool()>& expired);

}  // namespace sailor
