#include "planner/spec/training_flops.h"

#include "planner/spec/lora_parameters.h"

namespace sailor {

double layer_flops_per_token(const TransformerShape& shape, const ModelSpec& model,
                             const std::optional<LoraSpec>& lora, int layer) {
  constexpr double kOfWeightGradients = 2;
  if (layer == 0) return 0;
  if (layer > model.layers)
    return (lora ? 6 - kOfWeightGradients : 6) * static_cast<double>(shape.vocabulary) * shape.hidden;
  const TransformerShape block = shape.of_block(layer - 1);
  double flops = block_flops_per_token(block);
  if (!lora) return flops;
  flops -= kOfWeightGradients * static_cast<double>(block.block_parameters());
  for (const ParameterSpec& adapter : adapter_parameters(model, *lora, layer))
    flops += 6.0 * static_cast<double>(adapter.elements());
  return flops;
}

double training_flops_per_token(const ModelSpec& model, const std::optional<LoraSpec>& lora) {
  const TransformerShape shape = shape_of(model);
  double flops = 0;
  for (int layer = 0; layer < model.num_all_layers(); ++layer)
    flops += layer_flops_per_token(shape, model, lora, layer);
  return flops;
}

}  // namespace sailor
