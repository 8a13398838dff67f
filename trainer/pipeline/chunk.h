// Consecutive layers on one rank, forward and backward, layer by layer.
//
// Every layer is a separate graph, whose input is detached from the layer before: so the backward knows when
// it has finished a layer, whose gradients can then be reduced, and frees its activations. With full
// recomputation a block only stores its input, here or in the memory of the node; its backward recomputes the
// forward, with the same bits; with less, the block itself knows (model/recomputed.h). A split backward
// leaves the gradients of blocks' weights to a later call. One thread per object.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include <functional>
#include <vector>

#include "trainer/model/layer.h"
#include "trainer/pipeline/offloaded_inputs.h"

namespace sailor {

// Is called with a layer's index.
using LayerCall = std::function<void(int)>;

class Chunk {
 public:
  // Stored data for the backward of one microbatch.
  struct Flight {
    Batch batch;
    std::vector<at::Tensor> inputs;         // by layer; undefined for the model's first
    std::vector<OffloadedInput> offloaded;  // by layer; those that are no inputs then
    std::vector<at::Tensor> outputs;        // by layer; undefined if recomputed
    // By layer: where its graph begins, if the next one's input is offloaded. Its output would keep that
    // here.
    std::vector<torch::autograd::Edge> ends;
    std::vector<LaterGradientsPtr> later;  // by layer; empty if the backward is not split
  };

  // `layers` are those from the plan's layer `first_layer` on, of `model_layers` in total; they outlive the
  // object.
  Chunk(std::vector<Layer*> layers, int first_layer, int model_layers, const StageRecompute& recompute,
        bool splits_backward = false);

  int first_layer() const { return first_layer_; }
  int end_layer() const { return first_layer_ + static_cast<int>(layers_.size()); }
  const StageRecompute& recompute() const { return recompute_; }
  bool splits_backward() const { return splits_backward_; }
  int offloaded_inputs() const;  // of a microbatch
  // Of a layer's index.
  Recompute level_of(int layer) const;

  // `x` is undefined if the chunk begins with the model's first layer. The result has no graph. Calls both
  // functions for each layer, before and after it is computed. `offloaded` outlives the flight.
  at::Tensor forward(Flight& flight, const Batch& batch, at::Tensor x, OffloadedInputs& offloaded,
                     const LayerCall& layer_begins, const LayerCall& layer_ends) const;
  // The same without a graph, for validation.
  at::Tensor evaluate(const Batch& batch, at::Tensor x, const LayerCall& layer_begins,
                      const LayerCall& layer_ends) const;
  // Begins to copy back what a backward needs first, if it is offloaded.
  void fetch(Flight& flight) const { fetch_below(flight, layers_.size()); }
  // Takes the gradient of forward()'s result; returns that of `x`, or an undefined one. Calls both functions
  // for each layer, from the last down: before its parameters get gradients, and when they have those that
  // are not left for later.
  at::Tensor backward(Flight& flight, at::Tensor gradient, const LayerCall& layer_begins,
                      const LayerCall& layer_finished) const;
  // The second part of a split backward. Calls the function when a layer's gradients are complete.
  void backward_weights(Flight& flight, const LayerCall& layer_finished) const;

 private:
  bool is_block(int layer) const { return layer > 0 && layer + 1 < model_layers_; }
  void set_later(Flight& flight, std::size_t i) const {
    if (splits_backward_) flight.batch.later = flight.later[i];
  }
  Recompute level_at(std::size_t i) const { return level_of(first_layer_ + static_cast<int>(i)); }
  bool computed_again(std::size_t i) const { return level_at(i) >= Recompute::full; }
  bool offloads(std::size_t i) const { return i < layers_.size() && level_at(i) == Recompute::offload; }
  static void fetch_below(Flight& flight, std::size_t layer);

  const std::vector<Layer*> layers_;
  const int first_layer_;
  const int model_layers_;
  const StageRecompute recompute_;
  const bool splits_backward_;
};

}  // namespace sailor
