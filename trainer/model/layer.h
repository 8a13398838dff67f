// A layer of a model on one rank of a TP group, and what all model families have in common.
//
// Every sharded parameter is sharded along dimension 0 into tp equal blocks of rows, in TP rank order; all
// others are replicated. Initial values only depend on the parameter's name and the seed, so that every plan
// starts from the same model. A layer is used by one thread at a time.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "planner/spec/recompute.h"
#include "planner/spec/replica_shape.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/later_gradients.h"
#include "trainer/model/parameter.h"
#include "trainer/model/recomputed.h"

namespace sailor {

// Inputs for building a layer.
struct LayerContext {
  ModelSpec model;
  int64_t padded_vocabulary =
      0;  // rows of the vocabulary matrices: a multiple of every TP degree of the plan
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;  // device of parameters and activations
  uint64_t seed = 1;
  Communicator* tp = nullptr;             // this rank's TP group; nullptr = none. Outlives the layer
  Communicator* cp = nullptr;             // its context-parallel group, likewise (context_parallel.h)
  std::optional<LoraSpec> lora{};         // adapters are trained, and all else is frozen
  double z_loss = 0;                      // of training steps, see tensor_parallel.h
  const WeightSource* weights = nullptr;  // nullptr: random initial values. Only used while building
  bool unfilled = false;  // parameters have shapes, but no memory and no values until set_data()
  // Tensors that several layers of this rank share, by name: a tied matrix, tables of positions. The layers
  // of a rank are built with the same map; nullptr: every layer has its own. Only used while building.
  std::map<std::string, at::Tensor>* shared = nullptr;

  int tp_size() const { return tp ? tp->size() : 1; }
  int tp_rank() const { return tp ? tp->rank() : 0; }
  ReplicaShape shape() const { return {.tp = tp_size(), .cp = cp ? cp->size() : 1}; }
  int ring() const { return model.ring_degree(shape()); }
};

class KeyValueCache;

// The tokens of a microbatch, numbered through from one sequence to the next.
struct TokenGrid {
  int64_t sequences = 0, length = 0;

  int64_t tokens() const { return sequences * length; }
};

// A target that does not count in the loss.
inline constexpr int64_t kUncounted = -1;

// One microbatch: int64 token ids, [sequences, sequence] each. Only the first layer reads inputs and
// positions, only the last reads targets. Dropout needs the position in the run.
struct Batch {
  at::Tensor inputs{};
  at::Tensor targets{};
  std::optional<int64_t> step{};  // of the run; empty: not a training step, no dropout
  int64_t first_sequence = 0;     // index in the global batch; the others follow it
  // Lengths of the documents that the sequences consist of, one sequence after the other; empty: every
  // sequence is one. Tokens attend to those of their own document.
  std::vector<int64_t> documents{};
  // Of a microbatch whose tokens are split over a context-parallel group, and over the TP group between
  // tensor-parallel regions (tensor_parallel.h); else without tokens.
  TokenGrid split{};
  at::Tensor positions{};         // of the inputs in their documents; undefined: in their sequences
  LaterGradientsPtr later{};      // takes the gradients of weights; null: a backward computes all
  KeyValueCache* past = nullptr;  // the inputs continue what it has, one sequence each; not for training
};

class Layer {
 public:
  virtual ~Layer() = default;

  // Activations [sequences, sequence, hidden] in and out, replicated over the TP group; or [tokens, hidden]
  // of this rank's share where a batch's tokens are split. The first layer ignores `x`; the last returns the
  // sum of the cross entropies of the targets that count, a scalar, and in a training step with a z-loss both
  // sums.
  virtual at::Tensor forward(const at::Tensor& x, const Batch& batch) = 0;

  // What its forward does not keep, and its backward computes again, from now on. `full` is for who calls the
  // layer (pipeline/chunk.h). Layers other than blocks keep what they keep.
  virtual void recompute(Recompute level) { (void)level; }
  // Whoever measures that: is called with each computation of a backward, and calls it. They may be nested.
  using AroundCall = std::function<at::Tensor(const TensorCall&)>;
  virtual void around_recomputation(AroundCall around) { (void)around; }

  // The last layer only: [sequences, sequence, this rank's rows of the vocabulary].
  virtual at::Tensor logits(const at::Tensor& x) {
    (void)x;
    throw std::logic_error("only the last layer has logits");
  }

  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

 protected:
  std::vector<Parameter> parameters_;
};

}  // namespace sailor
