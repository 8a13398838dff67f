// The peak FLOP/s of a plan's GPUs, which MFU compares with training_flops_per_token()
// (planner/spec/training_flops.h). Pure.
#pragma once

#include <optional>

#include "planner/plan/plan.h"
#include "planner/spec/catalog.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {

// Peak FLOP/s of all GPUs of the plan at this precision, from the catalog; nothing if it is unknown for one
// of them, or if one is emulated.
std::optional<double> peak_flops(const Plan& plan, const Catalog& catalog, Precision precision);

}  // namespace sailor
