// A parameter on one rank, and the source of its initial values. Unsharded it is a ParameterSpec
// (planner/spec/model_parameter.h).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "planner/spec/model_parameter.h"

namespace sailor {

struct Parameter {
  std::string name;
  int layer = 0;  // see ParameterSpec
  bool sharded = false;
  bool decay = false;
  at::Tensor value;        // this rank's rows; requires grad unless frozen
  bool tied_copy = false;  // see ParameterSpec
  bool frozen = false;     // not trained: it has no gradient, and is no part of the training state
  bool linear = false;     // a weight of a linear layer in a block
  // With ZeRO-3: `value` is only right while the layer is computed. The slices of the optimizer have it.
  bool gathered = false;
};

// Source of initial weights. Implementations are thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Fills `rows` with rows [first, first + rows.size(0)) of the parameter, none of them padding. Throws
  // InputError when the parameter is missing or has another shape, std::runtime_error when reading fails.
  virtual void read(const ParameterSpec& parameter, int64_t first, at::Tensor rows) const = 0;
};

}  // namespace sailor
