#include "planner/simulator/memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sailor {
namespace {

// What is large fits nowhere; it must only stay in range when it is added up.
constexpr int64_t kMost = int64_t{1} << 58;

int64_t product(double a, double b) {
  return static_cast<int64_t>(std::min(std::ceil(a * b), static_cast<double>(kMost)));
}
int64_t product(int64_t a, double b) {
  return product(static_cast<double>(a), b);
}

// Of one sequence.
struct ChunkActivations {
  int64_t kept = 0;     // by one microbatch in flight
  int64_t above = 0;    // the most that a backward needs beyond what all its layers keep
  int64_t pending = 0;  // of a microbatch between the parts of its split backward
  int64_t on_host = 0;  // by one microbatch in flight
};

int64_t pending_bytes(const LayerSizes& block) {
  return block.pending_bytes > 0 ? block.pending_bytes : block.activation_bytes;
}

// Calls work(first, count) for layers with the same sizes and the same recomputation, from the last one down.
// The model's first and last layers, which are no blocks, are alone.
template <typename Work>
void for_each_run(const ChunkMemoryInput& chunk, const Work& work) {
  const int ends = chunk.has_previous ? 0 : 1, layers = static_cast<int>(chunk.layers.size());
  const int starts[] = {ends, ends + chunk.recompute.deep_blocks(), layers - (chunk.has_next ? 0 : 1)};
  for (int end = layers; end > 0;) {
    const auto last = static_cast<size_t>(end) - 1;
    int first = chunk.alike.empty() ? end - 1 : std::max(0, end - chunk.alike[last]);
    for (const int start : starts)
      if (start < end) first = std::max(first, start);
    work(static_cast<size_t>(first), end - first);
    end = first;
  }
}

ChunkActivations activations_of(const ChunkMemoryInput& chunk) {
  ChunkActivations sum;
  const int ends = chunk.has_previous ? 0 : 1;
  int64_t released = 0, on_their_way = 0;
  for_each_run(chunk, [&](size_t first, int count) {
    const LayerSizes& layer = chunk.layers[first];
    const Recompute level = chunk.recompute.of_block(static_cast<int>(first) - ends);
    const int64_t kept = layer.kept_bytes(level);
    // What a split backward leaves is not released.
    const bool block = (first > 0 || chunk.has_previous) &&
                       (first + static_cast<size_t>(count) < chunk.layers.size() || chunk.has_next);
    const int64_t left = block && chunk.weight_delay != kWholeBackward ? pending_bytes(layer) : 0;
    // What it did not keep it computes again.
    const int64_t again = chunk.nothing_again ? 0 : std::max<int64_t>(0, layer.activation_bytes - kept);
    const int64_t least_released = released + (count - 1) * std::min<int64_t>(0, kept - left);
    sum.above = std::max(sum.above, layer.workspace_bytes + again - least_released);
    released += count * (kept - left);
    sum.kept += count * kept;
    sum.pending += count * left;
    if (level == Recompute::offload && layer.activation_bytes > kept) {
      const int64_t input = layer.kept_bytes(Recompute::full);
      sum.on_host += count * input;
      on_their_way = std::max(on_their_way, 2 * input);
    }
  });
  sum.above = std::max(sum.above, -released) + (chunk.nothing_again ? 0 : on_their_way);
  return sum;
}

// Parameters on a rank. Of what its layers share with one another the rank has one.
struct Held {
  int64_t trained = 0, frozen = 0;
  int64_t largest_layer = 0;
  // What stays whole of sharded gradients, and of sharded weights: matrices that two layers share, and the
  // largest two neighbouring layers.
  int64_t whole_gradients = 0, whole_weights = 0;
  int64_t tied = 0;
};

// The largest sum of two neighbours that are whole at once: one of them may be whole beside each neighbour.
class TwoLayers {
 public:
  void add(int64_t size) {
    largest_ = std::max(largest_, size);
    second_ = std::max(second_, std::min(before_, size));
    before_ = size;
  }
  int64_t sum() const { return largest_ + second_; }

 private:
  int64_t before_ = 0, largest_ = 0, second_ = 0;
};

Held held_by(const RankMemoryInput& input) {
  Held held;
  TwoLayers gradients, weights;
  for (size_t c = input.chunks.size(); c-- > 0;) {
    const ChunkMemoryInput& chunk = input.chunks[c];
    for_each_run(chunk, [&](size_t first, int count) {
      const LayerSizes& layer = chunk.layers[first];
      const bool is_first = !chunk.has_previous && first == 0;
      const int64_t tied = is_first ? input.tied_parameters : layer.tied_parameters;
      held.trained += count * (layer.parameters - (input.both_ends ? layer.tied_parameters : 0));
      held.frozen += count * (layer.frozen_parameters - (input.both_ends ? layer.tied_frozen_parameters : 0));
      held.largest_layer = std::max(held.largest_layer, layer.parameters);
      held.tied = std::max(held.tied, tied);
      for (int i = 0; i < std::min(count, 2); ++i) {  // more change nothing
        gradients.add(layer.parameters - tied);
        weights.add(layer.parameters - tied + layer.frozen_parameters);
      }
    });
  }
  held.whole_gradients = std::min(gradients.sum() + held.tied, held.trained);
  held.whole_weights = std::min(weights.sum() + held.tied, held.trained + held.frozen);
  return held;
}

// What the states of the parameters need under the style, for each kind of state.
void add_states(const RankMemoryInput& input, const Held& held, const FrameworkStyle& style,
                Precision precision, MemoryBreakdown& memory) {
  const Zero zero = input.replicas > 1 ? std::max(input.zero, style.zero) : Zero::none;
  const auto shards = [&](Zero degree) { return zero >= degree ? static_cast<double>(input.replicas) : 1.0; };
  const double moments =
      style.moments_bytes_at(precision) + (input.average ? kind_of(precision).state_bytes : 0);
  memory.master_bytes = product(held.trained, style.master_bytes_at(precision) / shards(Zero::optimizer));
  memory.optimizer_bytes = product(held.trained, moments / shards(Zero::optimizer));
  if (input.offload == Offload::optimizer)
    memory.offloaded_bytes = std::exchange(memory.master_bytes, 0) + std::exchange(memory.optimizer_bytes, 0);

  const double gradient = style.gradient_bytes_at(precision);
  if (zero >= Zero::gradients) {
    memory.gradients_bytes = product(held.trained - held.tied, gradient / shards(zero)) +
                             product(held.whole_gradients, gradient + style.gradient_copy_bytes);
  } else {
    memory.gradients_bytes = product(held.trained, gradient + style.gradient_copy_bytes);
  }
  if (!input.chunks.empty() && !input.chunks[0].has_previous && !input.chunks[0].layers.empty())
    memory.gradients_bytes += product(input.chunks[0].layers[0].parameters, style.embedding_gradient_bytes);

  const double weight = style.weight_bytes(precision);
  memory.frozen_bytes = product(held.frozen, weight / shards(Zero::parameters));
  memory.weights_bytes = product(held.trained, weight / shards(Zero::parameters)) + memory.frozen_bytes;
  if (zero >= Zero::parameters) memory.weights_bytes += product(held.whole_weights, weight);
}

// What the style says of gathered inputs, over all blocks and microbatches in flight.
int64_t gathered_input_bytes(const RankMemoryInput& input, const FrameworkStyle& style, Precision precision) {
  double blocks = 0;
  for (const ChunkMemoryInput& chunk : input.chunks)
    for_each_run(chunk, [&](size_t first, int count) {
      if (chunk.layers[first].activation_bytes > 0)
        blocks += count * std::max(0, chunk.in_flight - style.gathered_input_spares);
    });
  if (style.gathered_input_blocks > 0) blocks = std::min<double>(blocks, style.gathered_input_blocks);
  const double element_scale = element_bytes(precision) / 2.0;
  return product(style.gathered_input_bytes * element_scale * (1 - 1.0 / input.shape.tp) * blocks,
                 static_cast<double>(input.gathered_elements) * input.microbatch);
}

}  // namespace

int in_flight(int stage, int stages, int microbatches) {
  return std::min(stages - stage, microbatches);
}

MemoryBreakdown rank_memory(const RankMemoryInput& input, const FrameworkStyle& style, Precision precision) {
  const int64_t element = element_bytes(precision);
  MemoryBreakdown memory;
  int64_t persistent = 0, above = 0;
  for (const ChunkMemoryInput& chunk : input.chunks) {
    for_each_run(chunk, [&](size_t first, int) {
      persistent = std::max(persistent, chunk.layers[first].persistent_bytes);
    });
    const ChunkActivations activations = activations_of(chunk);
    const double slack = 1 + (input.shape.tp > 1 ? style.activation_slack_tp : style.activation_slack);
    memory.offloaded_inputs_bytes +=
        product(activations.on_host, static_cast<double>(input.microbatch) * chunk.in_flight);
    memory.activations_bytes +=
        product(activations.kept, slack * static_cast<double>(input.microbatch) * chunk.in_flight);
    const int delayed = std::max(0, std::min(chunk.weight_delay, input.microbatches - 1));
    memory.activations_bytes +=
        product(activations.pending, slack * static_cast<double>(input.microbatch) * delayed);
    above = std::max(above, activations.above);

    const double message_bytes = static_cast<double>(input.microbatch * element) / input.token_shares;
    // Where a layer's activations do not hold its input, the stage keeps what it received of every microbatch
    // in flight; and there are buffers for messages on their way.
    const double received = style.message_buffers + (style.keeps_received ? chunk.in_flight : 0);
    if (chunk.has_previous)
      memory.communication_bytes += product(chunk.input_elements, received * message_bytes);
    if (chunk.has_next && !chunk.layers.empty())
      memory.communication_bytes +=
          product(chunk.layers.back().output_elements, style.message_buffers * message_bytes);
  }
  const Held held = held_by(input);
  add_states(input, held, style, precision, memory);
  memory.offloaded_bytes += memory.offloaded_inputs_bytes;
  memory.workspace_bytes = product(above, input.microbatch);
  if (input.microbatches > 1) memory.workspace_bytes += product(persistent, input.microbatch);
  memory.communication_bytes += product(
      input.gathered_elements, style.gather_buffers * static_cast<double>(input.microbatch * element));
  if (input.replicas > 1 && style.sync_buffer) {
    // Pieces of whole layers up to the size of a bucket; one at least.
    const double gradient = style.gradient_bytes_at(precision);
    const double largest = static_cast<double>(held.largest_layer) * gradient;
    const double all = static_cast<double>(held.trained) * gradient;
    memory.communication_bytes +=
        product(style.sync_copies, std::min(all, static_cast<double>(style.sync_bucket_bytes) +
                                                     (style.sync_whole_layers ? largest : 0)));
  }
  memory.base_bytes = input.base_bytes;
  if (style.gathered_input_bytes > 0) {
    const int64_t kept = gathered_input_bytes(input, style, precision);
    const bool is_little = style.gathered_input_most_bytes == 0 || kept < style.gathered_input_most_bytes;
    if (is_little && memory.total() + kept < style.gathered_input_limit_bytes)
      memory.communication_bytes += kept;
  }
  memory.fragmentation_bytes = product(memory.total() - memory.base_bytes, style.fragmentation);
  return memory;
}

}  // namespace sailor
