// Dropout of activations outside of tensor-parallel regions: an element is dropped with probability
// `model.dropout`, and the others are multiplied by 1 / (1 - dropout). dropout_mask.h decides which ones; the
// backward draws the same numbers again instead of storing a mask. Without `model.dropout`, and in
// validation, it does nothing at no cost.
//
// Every family applies it in the same places: to the embedding, and to the outputs of attention and MLP
// before the residual addition. Attention probabilities are never dropped: the fused kernels do not support
// it.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/dropout_mask.h"
#include "trainer/model/parameter_maker.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {

// Site within a layer; the embedding has one.
enum class DropoutSite { embedding = 0, attention = 0, mlp = 1 };

struct Dropout {
  double rate;
  uint64_t seed;
  int layer;

  explicit Dropout(const ParameterMaker& make)
      : rate(make.model().dropout), seed(make.context().seed), layer(make.layer()) {}

  // `x`: what this rank has of [sequences, tokens, hidden] of the microbatch `batch`.
  at::Tensor operator()(const at::Tensor& x, const Batch& batch, DropoutSite site,
                        const TensorParallel& tp = {}) const;
};

// Elements from number `first` on of consecutive sequences, which have `of_sequence` each.
struct ElementRange {
  int64_t of_sequence = 0;
  int64_t first = 0;
};

// `x`, the elements of `range`, with some dropped and the rest scaled; `place` is that of the first of the
// sequences. By a loop over host memory, or by libtorch's operators on a device, which take some dozens of
// passes.
at::Tensor dropped_by_loop(const at::Tensor& x, const ElementRange& range, const DropoutPlace& place,
                           double rate);
at::Tensor dropped_by_operators(const at::Tensor& x, const ElementRange& range, const DropoutPlace& place,
                                double rate);

}  // namespace sailor
