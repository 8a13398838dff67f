// The FLOPs of training a model, and the peak FLOP/s of its GPUs: the inputs of MFU. Pure.
#pragma once

#include <optional>

#include "planner/plan/plan.h"
#include "planner/spec/catalog.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {

// Floating-point operations per trained token (Chowdhery et al. 2022, appendix B; the same count as nanoGPT's
// and Megatron's): 6 per parameter of the blocks and of the projection to the vocabulary, and 12 x heads x
// head width x keys per block for attention, without the discount for causal masks. Recomputation does not
// count.
double training_flops_per_token(const TransformerShape& shape);

// Peak FLOP/s of all GPUs of the plan at this precision, from the catalog; nothing if it is unknown for one
// of them, or if one is emulated.
std::optional<double> peak_flops(const Plan& plan, const Catalog& catalog, Precision precision);

}  // namespace sailor
