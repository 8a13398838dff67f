// Causal attention over tokens that a ring of ranks splits (Liu et al. 2023, "Ring Attention"), in runs from
// the front and from the back of every sequence, so that all ranks have equal work (context_parallel.h).
//
// In step s a rank attends to the keys of the rank s before it in the ring, while those of the next step are
// on their way: all queries to the first run of a rank below it, those of its second run to both of a rank
// above it. So only the first step needs a causal mask, and what is sent is what the other one sees. The
// backward sends keys and values once more, and the gradients of each part to their owner, which sums them in
// fp32. Documents are parts of their own; windows are masks, where they end inside of a part.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/model/heads.h"
#include "trainer/model/partial_attention.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {

// `heads` are those of gather_tokens(): [sequences, heads, tokens of this rank, size]. `documents` as in
// Batch; a window of 0 is none. Differentiable. Collective over the ring, in the forward and in the backward.
at::Tensor ring_attend(const Heads& heads, const TensorParallel& tp, const std::vector<int64_t>& documents,
                       const AttentionRule& rule, int64_t window = 0);

}  // namespace sailor
