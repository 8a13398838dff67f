// The operators at the borders of a tensor-parallel region, differentiable, after Megatron-LM (Shoeybi et
// al., section 3).
//
// With a null or one-member `tp` they are the plain operators. Collectives run on the calling thread, in the
// order of the forward and, in the backward, of the autograd engine, which is the same on every member
// because their graphs are equal.
#pragma once

#include <ATen/ATen.h>

#include "trainer/comm/communicator.h"

namespace sailor {

// In-place all-reduce of a contiguous tensor in the communicator's memory, ordered with the computations of
// the calling thread.
void all_reduce(Communicator& comm, at::Tensor& tensor, ReduceOp op = ReduceOp::sum);
void broadcast(Communicator& comm, at::Tensor& tensor, int root);

// All-reduce over the group in the forward, identity in the backward: partial results become a replicated
// one.
at::Tensor leave_tensor_parallel(const at::Tensor& x, Communicator* tp);

// Identity in the forward, all-reduce of the gradient in the backward: a replicated tensor that every rank
// uses for its own part.
at::Tensor enter_tensor_parallel(const at::Tensor& x, Communicator* tp);

// Rows of a table of which this rank has block tp->rank(), looked up by int64 ids.
at::Tensor vocabulary_embedding(const at::Tensor& table, const at::Tensor& ids, Communicator* tp);

// Sum over tokens of the cross entropy of `logits` [tokens, this rank's columns] with int64 `targets`
// [tokens], which are indices over all ranks' columns; negative ones do not count. Columns from `vocabulary`
// on are padding and do not count. The backward overwrites the logits. 16-bit logits give a loss in fp32,
// like fp32 ones.
//
// With a `z_loss` two numbers: that sum, and the z-loss (Chowdhery et al. 2022, PaLM), the sum over the same
// tokens of z_loss log(Z)^2, where Z is the sum of exp(logit) over the vocabulary.
at::Tensor vocabulary_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, int64_t vocabulary,
                                    Communicator* tp, double z_loss = 0);

}  // namespace sailor
