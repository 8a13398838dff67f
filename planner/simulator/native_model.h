// The native cost model: one iteration as the framework of the context runs it, our own trainer unless told
// otherwise. Each pipeline is an exact event timeline of its schedule with its own number of microbatches;
// gradients are summed layer group by layer group in one global order; then the optimizer steps.
#pragma once

#include <vector>

#include "planner/simulator/lookup.h"
#include "planner/simulator/memory.h"
#include "planner/simulator/timeline.h"

namespace sailor::native {

// A message of `elements` per sequence between two neighbouring stages, for one microbatch. Between TP groups
// of different degrees the trainer scatters and gathers; see scatter_gather_s() for the approximation.
// `senders` GPUs of the sending node send at once.
double message_s(const PlanningContext& context, const PlanStage& from, const PlanStage& to, int64_t elements,
                 int microbatch, double senders);

// Elements of one sequence that cross the boundary before `layer`.
inline int64_t boundary_elements(const std::vector<LayerSizes>& sizes, int layer) {
  return sizes.at(static_cast<size_t>(layer) - 1).output_elements;
}

// The schedule of a plan's pipelines under a framework's style.
PipelineSchedule schedule_of(const FrameworkStyle& style, const Plan& plan);

Prediction simulate(const PlanningContext& context, const Plan& plan);
// The same, and every pipeline's timeline with its events.
Prediction simulate(const PlanningContext& context, const Plan& plan, std::vector<Timeline>& timelines);

}  // namespace sailor::native
