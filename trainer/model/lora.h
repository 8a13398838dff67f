// The adapters of one linear layer on one rank (planner/spec/lora_parameters.h). Two adapters' As are one
// product, and one all-reduce is for all of them.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "trainer/model/parameter_maker.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {

class LoraLayer {
 public:
  // Takes the adapters of the weight `NAME.weight`; none without LoRA.
  LoraLayer(ParameterMaker& make, const std::string& name);

  bool empty() const { return adapters_.empty(); }
  // What is added to the result of the layer for `x`: (alpha / r) B A x. Requires adapters.
  at::Tensor operator()(const at::Tensor& x, const TensorParallel& tp) const;

 private:
  struct Adapter {
    at::Tensor a, b;
    int64_t first = 0, rows = 0;
  };
  at::Tensor of_split_outputs(const at::Tensor& x, const TensorParallel& tp) const;
  // The results of all adapters, in the order of the weight's rows.
  at::Tensor in_groups(const std::vector<at::Tensor>& results) const;

  std::vector<Adapter> adapters_;
  bool inputs_are_split_ = false;
  int64_t groups_ = 1;      // of the weight's rows, on this rank
  int64_t group_rows_ = 0;  // of each
  double scale_ = 1;
};

}  // namespace sailor
