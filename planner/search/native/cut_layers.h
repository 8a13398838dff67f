// Splits the layers of a template's pipelines so that the slowest stage is as fast as memory allows: the
// minimum time at which stages with as many layers as possible cover the model.
#pragma once

#include "planner/search/native/scorer.h"

namespace sailor::native {

// Sets the end layers of a class. False if no split fits, or there are more stages than layers.
// `choose_recompute`: stages without further chunks recompute exactly where they then hold more layers;
// otherwise as in the template.
bool cut_layers(Scorer& scorer, PlanTemplate& of, size_t pipeline_class, bool choose_recompute);

// Alternative: every stage as close to its share of the model by speed as layers allow, ignoring memory.
// Stages of such a split have similar numbers of parameters, which matters if gradient reduction is slow.
// False if there are more stages than layers.
bool cut_by_speed(const Space& space, PlanTemplate& of, size_t pipeline_class);

// Moves single layers across boundaries while the pipelines get faster, ignoring messages, gradient reduction
// and memory: with few microbatches the sum of all stages matters more than the slowest. False if nothing
// improves.
bool shorten(Scorer& scorer, PlanTemplate& of, size_t pipeline_class);

// Times of a class of pipelines without messages and gradient reduction.
struct ClassTimes {
  double slowest_s = 0;  // group of GPUs, one microbatch
  double others_s = 0;   // the sum of what all others add (Space::ramp_part())
  bool operator==(const ClassTimes&) const = default;
  double pipeline_s(double microbatches, int interleave) const {
    return microbatches * slowest_s + others_s / interleave;
  }
};
ClassTimes times_of(const Space& space, const PlanTemplate& of, const TemplateClass& pipelines);

// Gives classes with fewer microbatches than pipelines an equal share, for callers that need a share before
// share_batch() improves it.
void share_equally(const Space& space, PlanTemplate& of);

// Divides the global batch among the classes so that the last of them ends as early as possible. False if
// there are fewer microbatches than pipelines.
bool share_batch(const Space& space, PlanTemplate& of);

}  // namespace sailor::native
