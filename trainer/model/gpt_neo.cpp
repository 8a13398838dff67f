#include "trainer/model/activations.h"
#include "trainer/model/ends.h"
#include "trainer/model/layer_norm_block.h"
#include "trainer/model/registry.h"

namespace sailor {

std::unique_ptr<Layer> build_gpt_neo(const LayerContext& context, int index) {
  if (index == 0) return std::make_unique<PositionedEmbedding>(context);
  if (index > context.model.layers) return std::make_unique<NormedHead<LayerNorm>>(context);
  const LayerNormBlockSpec spec = {
      .activation = gelu_by_tanh,
      .scaled_scores = false,
      .window = context.model.attends_locally(index) ? context.model.attention_window : 0};
  return std::make_unique<LayerNormBlock>(context, index, spec);
}

}  // namespace sailor
