#include "planner/profile/adapted_profile.h"

#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {
namespace {

// Of the adapters of one block; all blocks have the same.
struct Adapters {
  int64_t sharded = 0, whole = 0;  // elements
  int64_t narrow_columns = 0;      // of all results of A together

  double elements() const { return static_cast<double>(sharded + whole); }
  int64_t held(ReplicaShape shape) const { return sharded / shape.parts() + whole; }
};

Adapters adapters_of_block(const JobSpec& job) {
  Adapters sum;
  for (const ParameterSpec& parameter : adapter_parameters(job.model, *job.training.lora, /*layer=*/1))
    (parameter.sharded ? sum.sharded : sum.whole) += parameter.elements();
  for (const ParameterSpec& parameter : layer_parameters(job.model, 1, job.model.vocabulary))
    sum.narrow_columns += job.training.lora->r *
                          static_cast<int64_t>(adapters_of(parameter, job.model, *job.training.lora).size());
  return sum;
}

// Factors on the times of a block.
struct Factors {
  double forward = 1, backward = 1, update = 0;
};

Factors factors_of(const TransformerShape& block, const Adapters& adapters) {
  const auto weights = static_cast<double>(block.block_parameters());
  const double attention = 4.0 * block.heads * block.head_width * block.keys();  // of a forward
  const double forward = 2 * weights + attention, backward = 4 * weights + 2 * attention;
  return {(forward + 2 * adapters.elements()) / forward,
          (backward - 2 * weights + 4 * adapters.elements()) / backward, adapters.elements() / weights};
}

void freeze(LayerSizes& layer) {
  layer.frozen_parameters = layer.parameters;
  layer.tied_frozen_parameters = layer.tied_parameters;
  layer.parameters = layer.tied_parameters = 0;
}

}  // namespace

void adapt(LayerProfile& profile, const JobSpec& job) {
  const TransformerShape shape = shape_of(job.model);
  const Adapters adapters = adapters_of_block(job);
  std::vector<Factors> factors;  // by block
  for (int block = 0; block < shape.layers; ++block)
    factors.push_back(factors_of(shape.of_block(block), adapters));
  for (auto& [key, cell] : profile.cells) {
    cell.front().backward_s = cell.front().update_s = cell.back().update_s = 0;
    cell.back().backward_s /= 2;
    for (std::size_t block = 0; block < factors.size(); ++block) {
      LayerTimes& times = cell.at(block + 1);
      times.forward_s *= factors[block].forward;
      times.backward_s *= factors[block].backward;
      times.update_s *= factors[block].update;
      // What is left of the gradients of weights is little, and computed at once.
      times.light_s = times.mlp_s = times.weight_s = 0;
    }
  }
}

void adapt(ModelSizes& sizes, const JobSpec& job, Precision precision) {
  const Adapters adapters = adapters_of_block(job);
  const int64_t token_bytes = int64_t{job.model.sequence} * element_bytes(precision);
  for (auto& [shape, layers] : sizes.by_shape) {
    for (LayerSizes& layer : layers) freeze(layer);
    for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
      LayerSizes& block = layers[i];
      block.parameters = adapters.held(shape);
      // Results of A, and one more gradient of the layer's input.
      block.activation_bytes += adapters.narrow_columns * token_bytes;
      if (block.selective_bytes > 0) block.selective_bytes += adapters.narrow_columns * token_bytes;
      block.workspace_bytes += job.model.hidden * token_bytes;
      // Frozen weights do not keep the inputs that these levels would compute again.
      block.light_bytes = block.mlp_bytes = block.pending_bytes = 0;
    }
  }
}

}  // namespace sailor
