// Dropout of replicated activations: an element is left out with probability `model.dropout`, and the others
// are multiplied by 1 / (1 - dropout). Which ones: dropout_mask.h; the backward draws the same numbers again
// instead of keeping a mask. Without `model.dropout`, and in validation, it does nothing at no cost.
//
// Every family has it in the same places: on the embedding, and on what attention and MLP add to the residual
// stream. Attention's probabilities are never dropped: the fused kernel has no way to.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/dropout_mask.h"
#include "trainer/model/parameter_maker.h"

namespace sailor {

// Of a layer; the embedding's has one.
enum class DropoutSite { embedding = 0, attention = 0, mlp = 1 };

struct Dropout {
  double rate;
  uint64_t seed;
  int layer;

  explicit Dropout(const ParameterMaker& make)
      : rate(make.model().dropout), seed(make.context().seed), layer(make.layer()) {}

  // `x`: [sequences, tokens, hidden] of the microbatch `batch`, whole and alike on every rank of the TP
  // group.
  at::Tensor operator()(const at::Tensor& x, const Batch& batch, DropoutSite site) const;
};

// `x` with elements left out, the rest scaled; `first` is the place of the first of the sequences, along
// dimension 0. By a loop over the host's memory, and by libtorch's operators for a device, which take some
// dozens of passes.
at::Tensor dropped_by_loop(const at::Tensor& x, const DropoutPlace& first, double rate);
at::Tensor dropped_by_operators(const at::Tensor& x, const DropoutPlace& first, double rate);

}  // namespace sailor
