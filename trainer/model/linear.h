// The two linear layers of a tensor-parallel region (Megatron-LM): column-parallel and row-parallel. Their
// weights are [outputs, hidden] and, stored transposed, [inputs, hidden]: both are sharded into blocks of
// rows.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "trainer/model/later_gradients.h"
#include "trainer/model/lora.h"
#include "trainer/model/parameter_maker.h"
#include "trainer/model/recomputed.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {

// Column-parallel: replicated [.., hidden], or the share of this rank, -> this rank's part of [.., outputs].
// Enters the region.
struct OutputSplitLinear {
  at::Tensor weight, bias;
  LoraLayer lora;

  // Takes `NAME.weight`, if the family lists it, `NAME.bias`, and adapters.
  OutputSplitLinear(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const OperatorInput& x, const TensorParallel& tp,
                        const LaterGradientsPtr& later = {}) const;
};

// Row-parallel: this rank's part of [.., inputs] -> replicated [.., hidden], or the share of this rank.
// Leaves the region.
struct InputSplitLinear {
  at::Tensor weight, bias;
  LoraLayer lora;

  InputSplitLinear(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const OperatorInput& x, const TensorParallel& tp,
                        const LaterGradientsPtr& later = {}) const;
};

}  // namespace sailor
