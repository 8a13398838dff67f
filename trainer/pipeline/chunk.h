// A run of consecutive layers on one rank, forward and backward, layer by layer.
//
// Every layer is a graph of its own, whose input is cut off from the layer before: so the backward knows when
// it has finished a layer, whose gradients can then go on their way, and frees what the layer kept. With
// recomputation a block keeps its input only; its backward computes the forward again, with the same bits.
// The embedding keeps next to nothing and the loss needs the head's result at once, so these two are never
// computed again. One thread per object.
#pragma once

#include <functional>
#include <vector>

#include "trainer/model/layer.h"

namespace sailor {

class Chunk {
 public:
  // What the backward of one microbatch needs.
  struct Flight {
    Batch batch;
    std::vector<at::Tensor> inputs;   // by layer; undefined for the model's first
    std::vector<at::Tensor> outputs;  // by layer; undefined where it is computed again
  };

  // `layers` are those from the plan's layer `first_layer` on, of `model_layers` in all; they outlive the
  // object.
  Chunk(std::vector<Layer*> layers, int first_layer, int model_layers, bool recompute);

  int first_layer() const { return first_layer_; }
  int end_layer() const { return first_layer_ + static_cast<int>(layers_.size()); }
  bool recomputes() const { return recompute_; }

  // `x` is undefined when the chunk begins with the model's first layer. The result has no graph.
  at::Tensor forward(Flight& flight, const Batch& batch, at::Tensor x) const;
  // The same without any graph, for validation.
  at::Tensor evaluate(const Batch& batch, at::Tensor x) const;
  // Takes the gradient of what forward() returned; returns that of `x`, or an undefined one. Calls
  // `layer_finished` with each layer's index, from the last down, when the gradients of its parameters are
  // complete.
  at::Tensor backward(Flight& flight, at::Tensor gradient,
                      const std::function<void(int)>& layer_finished) const;

 private:
  bool computed_again(std::size_t i) const;

  const std::vector<Layer*> layers_;
  const int first_layer_;
  const int model_layers_;
  const bool recompute_;
};

}  // namespace sailor
