// Context parallelism: the tokens of a microbatch are split over the members of a group, all of which have
// the same weights. Only attention looks at other tokens: before it the members exchange their tokens'
// queries, keys and values, and after it the results go back.
//
// With a ring degree of 1 each gets all tokens of its part of the heads (Jacobs et al. 2023, "DeepSpeed
// Ulysses"). So attention itself is computed as without: documents, windows and causality need no care. Where
// there are fewer heads of keys and values than members, those with the same part of the heads are a ring,
// and split the tokens again, but so that causal attention is equal work for all: each has two runs of every
// sequence, one from the front and one from the back (ring_attention.h). One exchange does both (Fang and
// Zhao 2024, "USP").
//
// Member m has part m % (members / ring) of the heads, and is rank m / (members / ring) of its ring.
// Differentiable: the backward of each exchange is the other one. Both exchanges are collective over
// `tp.context`, on the calling thread, like those of tensor_parallel.h.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/model/tensor_parallel.h"

namespace sailor {

// What rank `rank` of a ring has of a sequence of `length` tokens: of 2 `ring` runs of equal length, or
// shorter at the end, the one with its number from the front and that from the back, in this order.
struct RingTokens {
  struct Run {
    int64_t first = 0, count = 0;
    int64_t end() const { return first + count; }
  };
  Run front, back;

  RingTokens(int64_t length, int ring, int rank);
  int64_t count() const { return front.count + back.count; }
};

// The members of `tp.context` that have the same heads as this rank, by rank in their ring.
int ring_rank(const TensorParallel& tp);
int ring_member(const TensorParallel& tp, int rank);

// [tokens of the region, columns] to [sequences, tokens of each, columns / parts of the heads]: the ring's
// tokens of this rank, all if there is none, of its block of the columns. Without a context-parallel group x
// is returned as it is.
at::Tensor gather_tokens(const at::Tensor& x, const TensorParallel& tp);

// The reverse.
at::Tensor scatter_tokens(const at::Tensor& x, const TensorParallel& tp);

}  // namespace sailor
