// A layer of a model as one rank of a TP group holds it, and what every model family has in common.
//
// Every sharded parameter is sharded along dimension 0 into tp equal blocks of rows, in TP rank order; all
// others are replicated. Initial values depend on the parameter's name and the seed alone, so that every plan
// starts from the same model. A layer is used by one thread at a time.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct Parameter {
  std::string name;      // unique in the model, the same in every plan, e.g. `3.attention.qkv.weight`
  int layer = 0;         // index as in plans
  bool sharded = false;  // along dimension 0
  bool decay = false;    // weight decay applies (matrices)
  at::Tensor value;      // this rank's rows; requires grad
};

// Where and how a layer is built.
struct LayerContext {
  ModelSpec model;
  int64_t padded_vocabulary =
      0;  // rows of the vocabulary matrices: a multiple of every TP degree of the plan
  at::ScalarType dtype = at::kFloat;
  uint64_t seed = 1;
  Communicator* tp = nullptr;  // this rank's TP group; nullptr = alone. Outlives the layer

  int tp_size() const { return tp ? tp->size() : 1; }
  int tp_rank() const { return tp ? tp->rank() : 0; }
};

// One microbatch: int64 token ids, [sequences, sequence] each. Only the first layer reads inputs, only the
// last reads targets.
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // Activations [sequences, sequence, hidden] in and out, the same on every rank of the TP group. The first
  // layer ignores `x`; the last returns the sum of the cross entropies of all tokens, a scalar.
  virtual at::Tensor forward(const at::Tensor& x, const Batch& batch) = 0;

  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

 protected:
  std::vector<Parameter> parameters_;
};

}  // namespace sailor
