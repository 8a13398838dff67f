// How long the layers of a model took in a trace (program_trace.h) of any trainer, with any code of the
// model. Pure.
//
// A pass of one microbatch is known by the calls of its blocks. What the model does before the first block is
// the embedding, what it does after the last, with the loss, the head. A node of autograd's graph belongs to
// the layer whose operator has made it; the gradient that it stores in a parameter belongs to the same layer.
// On a GPU the time of a layer is that in which at least one of its kernels runs; gaps in which the GPU waits
// for the host do not count, because profiling makes them longer. On processors it is that of its operators.
// Sums of data parallelism do not count, those of a TP group do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/profile/layer_profile.h"
#include "profiler/traces/program_trace.h"

namespace sailor {

struct TracedLayers {
  std::string block_class;  // of the modules that are blocks
  // One value for every layer of this kind in every pass.
  std::map<LayerKind, std::vector<double>> forward_s, backward_s;
  std::vector<double> update_s;  // of the optimizer's steps, over all layers
};

// `block_class` is empty where it is to be found: the one class with as many objects as the model has blocks.
// Throws InputError that says what the trace lacks: module calls, all layers of the model, a backward; or
// that it repeats activations, which would count as a backward.
TracedLayers traced_layers(const ProgramTrace& trace, const ModelSpec& model, int tp,
                           const std::string& block_class = "");

}  // namespace sailor
