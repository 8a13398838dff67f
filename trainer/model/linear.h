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

  // `stored` names are those of the layers, without `.weight` and `.bias`; `transposed` is of the weight.
  OutputSplitLinear(ParameterMaker& make, const std::string& name, int64_t outputs, const StoredRows& stored,
                    bool with_bias);
  at::Tensor operator()(const at::Tensor& x) const;
};

// This rank's part of [.., inputs] -> replicated [.., hidden]. Leaves the region. Initial values are those of
// a writer into the residual stream.
struct InputSplitLinear {
  at::Tensor weight, bias;
  Communicator* tp;

  InputSplitLinear(ParameterMaker& make, const std::string& name, int64_t inputs, const StoredRows& stored,
                   bool with_bias);
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace sailor
