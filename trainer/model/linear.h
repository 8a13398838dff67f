// The two linear layers of a tensor-parallel region (Megatron-LM): one whose outputs are divided over the TP
// group, and one whose inputs are. Their weights are [outputs, hidden] and, stored the other way round,
// [inputs, hidden]: both fall into blocks of rows.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "trainer/model/parameter_maker.h"

namespace sailor {

// Replicated [.., hidden] -> this rank's part of [.., outputs]. Enters the region.
struct OutputSplitLinear {
  at::Tensor weight, bias;
  Communicator* tp;

  // Takes `NAME.weight` and, if the family lists it, `NAME.bias`.
  OutputSplitLinear(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const at::Tensor& x) const;
};

// This rank's part of [.., inputs] -> replicated [.., hidden]. Leaves the region.
struct InputSplitLinear {
  at::Tensor weight, bias;
  Communicator* tp;

  InputSplitLinear(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace sailor
