// Elementwise reduction in host memory, in a fixed order: result = ((in[0] + in[1]) + in[2]) + ... for every
// element on every rank. bf16 and f16 are accumulated in fp32 and rounded once, to nearest even. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "trainer/comm/communicator.h"

namespace sailor {

// `out` may be one of the inputs; other overlaps are not allowed. Requires at least one input.
void reduce_in_order(ReduceOp op, ElementType type, std::span<const void* const> inputs, void* out,
                     std::size_t count);

}  // namespace sailor
