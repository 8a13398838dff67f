// A 32-bit hash of a sequence of tokens.
//
// The sum over the sequences of a global batch identifies the data of a step, independent of the plan and its
// order of microbatches, to compare runs that must see the same data. Sums of up to 2^21 of them are exact in
// fp64. XXH3 of the tokens as 64-bit little-endian numbers; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace sailor {

uint32_t token_digest(const std::vector<int64_t>& tokens);

}  // namespace sailor
