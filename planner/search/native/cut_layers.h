// Cuts the layers of a template's pipelines so that the slowest stage is as fast as memory allows: the least
// time in which stages, each taking as many layers as it can, reach the last one.
#pragma once

#include "planner/search/native/scorer.h"

namespace sailor::native {

// Sets the end layers of a class. False when no cut fits, or there are more stages than layers.
// `choose_recompute`: stages without further chunks compute again where they reach further then, and only
// there; else as the template says.
bool cut_layers(Scorer& scorer, PlanTemplate& of, size_t pipeline_class, bool choose_recompute);

// The other way: every stage as near to its share of the model by speed as layers allow, whatever its memory.
// Stages of such a cut hold about as many parameters each, which counts where gradient sums are slow. False
// when there are more stages than layers.
bool cut_by_speed(const Space& space, PlanTemplate& of, size_t pipeline_class);

// Moves single layers over boundaries of a cut while the pipelines take less, messages, sums and memory
// apart: of few microbatches the sum of all stages counts more than the slowest. False when nothing is
// gained.
bool shorten(Scorer& scorer, PlanTemplate& of, size_t pipeline_class);

// What a class of pipelines takes without messages and sums.
struct ClassTimes {
  double slowest_s = 0;  // group of GPUs, one microbatch
  double all_s = 0;      // the sum of all groups, one microbatch
  double pipeline_s(double microbatches, int interleave) const {
    return microbatches * slowest_s + (all_s - slowest_s) / interleave;
  }
};
ClassTimes times_of(const Space& space, const PlanTemplate& of, const TemplateClass& pipelines);

// Gives classes with fewer microbatches than pipelines as many as an equal share, for what asks for them
// before share_batch() does it well.
void share_equally(const Space& space, PlanTemplate& of);

// Shares the global batch among the classes so that the last of them ends as early as possible. False when
// there are fewer microbatches than pipelines.
bool share_batch(const Space& space, PlanTemplate& of);

}  // namespace sailor::native
