#include "trainer/pipeline/chunk.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

namespace sailor {

Chunk::Chunk(std::vector<Layer*> layers, int first_layer, int model_layers, const StageRecompute& recompute,
             bool splits_backward)
    : layers_(std::move(layers)),
      first_layer_(first_layer),
      model_layers_(model_layers),
      recompute_(recompute),
      splits_backward_(splits_backward) {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    layers_[i]->recompute(computed_again(i) ? Recompute::none : level_of(first_layer_ + static_cast<int>(i)));
}

int Chunk::offloaded_inputs() const {
  int count = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) count += offloads(i) ? 1 : 0;
  return count;
}

Recompute Chunk::level_of(int layer) const {
  if (!is_block(layer)) return Recompute::none;
  return recompute_.of_block(layer - std::max(first_layer_, 1));
}

at::Tensor Chunk::forward(Flight& flight, const Batch& batch, at::Tensor x, OffloadedInputs& offloaded,
                          const LayerCall& layer_begins, const LayerCall& layer_ends) const {
  flight.batch = batch;
  flight.inputs.resize(layers_.size());
  flight.offloaded.resize(layers_.size());
  flight.outputs.resize(layers_.size());
  flight.ends.resize(layers_.size());
  if (splits_backward_) flight.later.resize(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (offloads(i)) {
      flight.offloaded[i] = offloaded.offload(x);
    } else {
      if (x.defined()) x.set_requires_grad(true);
      flight.inputs[i] = x;
    }
    layer_begins(first_layer_ + static_cast<int>(i));
    if (splits_backward_ && is_block(first_layer_ + static_cast<int>(i)))
      flight.later[i] = c10::make_intrusive<LaterGradients>();
    set_later(flight, i);
    if (computed_again(i)) {
      const at::NoGradGuard no_graph;
      x = layers_[i]->forward(x, flight.batch);
    } else {
      flight.outputs[i] = layers_[i]->forward(x, flight.batch);
      x = flight.outputs[i].detach();
    }
    if (offloads(i + 1) && flight.outputs[i].defined()) {
      if (flight.outputs[i].requires_grad())
        flight.ends[i] = torch::autograd::impl::gradient_edge(flight.outputs[i]);
      flight.outputs[i].reset();
    }
    layer_ends(first_layer_ + static_cast<int>(i));
  }
  offloaded.have_left();
  return x;
}

at::Tensor Chunk::evaluate(const Batch& batch, at::Tensor x, const LayerCall& layer_begins,
                           const LayerCall& layer_ends) const {
  const at::NoGradGuard no_graph;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layer_begins(first_layer_ + static_cast<int>(i));
    x = layers_[i]->forward(x, batch);
    layer_ends(first_layer_ + static_cast<int>(i));
  }
  return x;
}

at::Tensor Chunk::backward(Flight& flight, at::Tensor gradient, const LayerCall& layer_begins,
                           const LayerCall& layer_finished) const {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    layer_begins(first_layer_ + static_cast<int>(i));
    fetch_below(flight, i);
    at::Tensor input = std::move(flight.inputs[i]);
    if (flight.offloaded[i].waits()) input = flight.offloaded[i].take().set_requires_grad(true);
    at::Tensor output = std::move(flight.outputs[i]);
    set_later(flight, i);
    if (computed_again(i)) output = layers_[i]->forward(input, flight.batch);
    // Without it, nothing in the layer is trained, and nothing before it.
    if (output.defined() && output.requires_grad()) torch::autograd::backward({output}, {gradient});
    if (const torch::autograd::Edge end = std::exchange(flight.ends[i], {}); end.is_valid())
      torch::autograd::Engine::get_default_engine().execute({end}, {gradient}, /*keep_graph=*/false,
                                                            /*create_graph=*/false, /*accumulate_grad=*/true);
    output.reset();
    gradient = input.defined() ? std::move(input.mutable_grad()) : at::Tensor();
    input.reset();
    layer_finished(first_layer_ + static_cast<int>(i));
  }
  flight.batch = {};
  return gradient;
}

void Chunk::fetch_below(Flight& flight, std::size_t layer) {
  for (std::size_t i = layer; i-- > 0;)
    if (flight.offloaded[i].waits()) return flight.offloaded[i].fetch();
}

void Chunk::backward_weights(Flight& flight, const LayerCall& layer_finished) const {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (flight.later[i]) flight.later[i]->compute();
    flight.later[i].reset();
    layer_finished(first_layer_ + static_cast<int>(i));
  }
}

}  // namespace sailor
