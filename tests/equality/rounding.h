// How much of a difference is rounding.
#pragma once

#include "tests/equality/case.h"
#include "tests/equality/compare.h"
#include "tests/equality/reference_model.h"

namespace sailor::equality {

// The reference in fp32 against itself in fp64, from the same initial values: loss_err and grad_err of
// rounding alone. Some models amplify it from step to step, whoever computes them.
Outcome rounding_of(const Case& c, const std::vector<ReferenceStep>& in_fp32);

}  // namespace sailor::equality
