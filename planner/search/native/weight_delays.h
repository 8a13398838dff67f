// By how many microbatches the stages of a template delay the gradients of weights (split_backward.h): as
// many as memory and their place in the pipeline allow, which keeps them busiest at the end of an iteration.
#pragma once

#include <cstddef>

#include "planner/search/native/plan_template.h"
#include "planner/simulator/iteration_model.h"

namespace sailor::native {

struct Delays {
  bool any = false;      // does any stage split its backward?
  bool limited = false;  // would any delay more if it had more memory?
};

// Sets the stages of a class, which has its microbatches. The first stage, for whose gradients nobody waits,
// and stages without memory for it do not split their backward; nor do those of a template that cannot
// (check_plan()).
Delays delay_weights(const Space& space, IterationModel& model, PlanTemplate& of, size_t pipeline_class);
// The same without a look at the memory.
void delay_most(const Space& space, PlanTemplate& of, size_t pipeline_class);
// No backward of the template is split.
void undo_delays(PlanTemplate& of);

}  // namespace sailor::native
