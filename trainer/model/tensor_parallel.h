// The operators at the borders of a tensor-parallel region, differentiable, after Megatron-LM (Shoeybi et
// al., section 3).
//
// With a null or one-member `tp` they are the plain operators. Collectives run on the calling thread, in the
// order of the forward and, in the backward, of the autograd engine, which is the same on every member
// because their graphs are equal.
//
// Between the regions an activation [sequences, length, hidden] is replicated; or, with sequence parallelism
// (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models"), every member
// has the rows of its share of the microbatch's tokens, [share, hidden]. Then a reduce-scatter leaves a
// region instead of an all-reduce, and an all-gather enters it. Norms, dropout and residual additions work
// on rows, and so they need not know. As each member has the gradients of its own tokens only, those of all
// replicated parameters are partial sums, which GradientSync completes.
//
// With context parallelism the microbatch's tokens are split over TP groups first. A region then has those of
// its group, as rows [tokens, ..]; only attention needs the others (context_parallel.h).
#pragma once

#include <ATen/ATen.h>

#include "planner/spec/replica_shape.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/layer.h"

namespace sailor {

// The part of a microbatch's tokens that one GPU of a replica has outside of tensor-parallel regions, if they
// are split: of equal size on all GPUs, or smaller at the end.
BlockRange token_share(int64_t tokens, const ReplicaShape& shape, int gpu);

// The TP group of a layer, and the tokens of a microbatch if they are split over it. Value type; the groups
// outlive every graph that uses them.
struct TensorParallel {
  Communicator* group = nullptr;    // or one member: alone
  TokenGrid split{};                // of the microbatch; without tokens: replicated
  Communicator* context = nullptr;  // or one member: a region has all tokens. Only with split tokens
  int ring = 1;                     // groups of `context` among which attention splits tokens, not heads

  bool alone() const { return group == nullptr || group->size() == 1; }
  bool splits_context() const { return context != nullptr && context->size() > 1; }
  bool splits_tokens() const { return split.tokens() > 0 && (!alone() || splits_context()); }
  // The tokens of the group's regions, and of these this rank's share outside of them.
  BlockRange region() const;
  BlockRange share() const;
  // Of a value per token, in any shape: those of the group's regions, and those of this rank's share. What is
  // not split is returned as it is.
  at::Tensor in_region(const at::Tensor& of_tokens) const;
  at::Tensor own(const at::Tensor& of_tokens) const;
  // [tokens of a region, columns], in the shape that regions have.
  at::Tensor region_view(const at::Tensor& rows) const;

  // Not differentiable, of rows in any number of columns. Partial results, which are overwritten, to their
  // sum: replicated, or this rank's share.
  at::Tensor sum(at::Tensor partial_rows) const;
  // What this rank has between the regions, to all rows.
  at::Tensor all(const at::Tensor& rows) const;

  // For autograd's saved data.
  std::vector<int64_t> packed() const;
  static TensorParallel unpacked(const std::vector<int64_t>& packed);
};

// In-place all-reduce of a contiguous tensor in the communicator's memory, ordered with the computations of
// the calling thread.
void all_reduce(Communicator& comm, at::Tensor& tensor, ReduceOp op = ReduceOp::sum);
void broadcast(Communicator& comm, at::Tensor& tensor, int root);

// All-reduce over the group in the forward, identity in the backward: partial results become a replicated
// one. With split tokens reduce-scatter and all-gather: a region's [.., columns] become [share, columns].
at::Tensor leave_tensor_parallel(const at::Tensor& x, const TensorParallel& tp);

// Identity in the forward, all-reduce of the gradient in the backward: a replicated tensor that every rank
// uses for its own part. With split tokens all-gather and reduce-scatter: [share, columns] become a region's,
// [sequences, length, columns] or, with context parallelism, [tokens, columns].
at::Tensor enter_tensor_parallel(const at::Tensor& x, const TensorParallel& tp);

// Rows of a table of which this rank has block tp.group->rank(), looked up by int64 ids of all tokens. Leaves
// a region.
at::Tensor vocabulary_embedding(const at::Tensor& table, const at::Tensor& ids, const TensorParallel& tp);

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
