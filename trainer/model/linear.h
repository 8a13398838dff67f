// The two linear layers of a tensor-parallel region (Megatron-LM): column-parallel and row-parallel. Their
// weights are [outputs, hidden] and, stored transposed, [inputs, hidden]: both are sharded into blocks of
// rows.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "trainer/model/lora.h"
#include "trainer/model/parameter_maker.h"

namespace sailor {

// Column-parallel: replicated [.., hidden] -> this rank's part of [.., outputs]. Enters the region.
struct OutputSplitLinear {
  at::Tensor weight, bias;
  LoraLayer lora;
  Communicator* tp;

  // Takes `NAME.weight`, if the family lists it, `NAME.bias`, and adapters.
  OutputSplitLinear(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const at::Tensor& x) const;
};

// Row-parallel: this rank's part of [.., inputs] -> replicated [.., hidden]. Leaves the region.
struct InputSplitLinear {
  at::Tensor weight, bias;
  LoraLayer lora;
  Communicator* tp;

  InputSplitLinear(ParameterMaker& make, const std::string& name);
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace sailor
