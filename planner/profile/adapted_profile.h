// Times and sizes of layers whose adapters (LoRA) are trained, from those of the same layers when all their
// parameters are. Pure.
//
// Sizes are exact: the layer's parameters become frozen ones, and those of its adapters are trained. Times
// are scaled by floating-point operations: a backward without gradients of weights, and the adapters'
// products. The embedding has no backward then, and layers without adapters no update.
#pragma once

#include "planner/profile/layer_profile.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// For a job with LoRA. Of a family with a known shape; throws InputError for another.
void adapt(LayerProfile& profile, const JobSpec& job);
void adapt(ModelSizes& sizes, const JobSpec& job, Precision precision);

}  // namespace sailor
