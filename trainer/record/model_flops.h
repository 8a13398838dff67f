// How much arithmetic a model's training is, and how much its GPUs could do: what MFU is made of. Pure.
#pragma once

#include <optional>

#include "planner/plan/plan.h"
#include "planner/spec/catalog.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {

// Floating-point operations per trained token (Chowdhery et al. 2022, appendix B; the same count as nanoGPT's
// and Megatron's): 6 per parameter of the blocks and of the projection to the vocabulary, and 12 x heads x
// head width x keys per block for attention, the causal half not taken off. Recomputation does not count.
double training_flops_per_token(const TransformerShape& shape);

// What the catalog promises for all GPUs of the plan at this precision, FLOP/s; nothing when it does not say
// so of one of them, or when one is emulated.
std::optional<double> peak_flops(const Plan& plan, const Catalog& catalog, Precision precision);

}  // namespace sailor
