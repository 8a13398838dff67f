// How much of a difference is rounding.
#pragma once

#include "tests/equality/case.h"
#include "tests/equality/compare.h"
#include "tests/equality/reference_model.h"

namespace sailor::equality {

// loss_err and grad_err of rounding alone, from the same initial values. Some models amplify it from step to
// step, whoever computes them; and of gradients that cancel out, as those of adapters of a low rank, little
// else may be left. In fp32: the reference against itself in fp64; in fp64: the same, as much smaller as its
// rounding is; in 16 bits: the reference in fp32 against itself with weights disturbed as if they were
// rounded to them (those that nothing updates need no rounding), and as much more as there are other
// roundings.
Outcome rounding_of(const Case& c, const std::vector<ReferenceStep>& reference);

}  // namespace sailor::equality
