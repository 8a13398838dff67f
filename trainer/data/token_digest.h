// A number of 32 bits that tells sequences of tokens apart.
//
// The sum over the sequences of a global batch says which data a step was trained on, whatever the plan and
// its order of microbatches: runs that must see the same data are compared by it. Sums of up to 2^21 of them
// are exact in fp64. XXH3 of the tokens as 64-bit little-endian numbers; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace sailor {

uint32_t token_digest(const std::vector<int64_t>& tokens);

}  // namespace sailor
