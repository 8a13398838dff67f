#include "planner/simulator/memory.h"

#include <algorithm>

namespace sailor {

namespace {

// a * b, held below the range of a sum of a few: what is that large fits nowhere.
int64_t product(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 58;
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? kMost : std::min(result, kMost);
}

}  // namespace

int in_flight(int stage, int stages, int microbatches) {
  return std::min(stages - stage, microbatches);
}

MemoryBreakdown stage_memory(std::span<const LayerSizes> layers, const StageMemoryInput& input,
                             Precision precision) {
  const int64_t element = element_bytes(precision);
  constexpr int64_t kMasterBytes = 4;
  const int64_t moment = std::max<int64_t>(element, kMasterBytes);
  const int64_t master = element < kMasterBytes ? kMasterBytes : 0;

  int64_t parameters = 0, activations = 0, workspace = 0, largest_layer = 0;
  for (const LayerSizes& layer : layers) {
    parameters += layer.parameters;
    activations += layer.activation_bytes;
    workspace = std::max(workspace, layer.workspace_bytes);
    largest_layer = std::max(largest_layer, layer.parameters);
  }
  MemoryBreakdown memory;
  memory.weights_bytes = product(parameters, element);
  memory.gradients_bytes = product(parameters, element);
  memory.optimizer_bytes = product(parameters, 2 * moment + master);
  memory.activations_bytes = product(product(activations, input.microbatch), input.in_flight);
  memory.workspace_bytes = product(workspace, input.microbatch);
  const int64_t sequence_bytes = input.microbatch * element;
  // The activations of a layer do not hold its input: the stage keeps what it received of every microbatch in
  // flight, beside a gradient on its way out and a message on its way in.
  if (input.has_previous)
    memory.communication_bytes += product(product(input.input_elements, sequence_bytes), input.in_flight + 2);
  if (input.has_next && !layers.empty())
    memory.communication_bytes += 2 * layers.back().output_elements * sequence_bytes;
  if (input.data_parallel) memory.communication_bytes += largest_layer * element;
  memory.base_bytes = input.base_bytes;
  return memory;
}

}  // namespace sailor
