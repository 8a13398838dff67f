// GPT-Neo (Black et al., 2021): as GPT-2, but scores are not scaled, queries, keys and values have no biases,
// and in every second block (2, 4, ...) a token attends to the last `attention_window` tokens only.
// Parameters are those of gpt2.cpp without i.qkv.bias.
#include <fmt/format.h>

#include "trainer/model/ends.h"
#include "trainer/model/layer_norm_block.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

LayerNormBlockSpec gpt_neo_block(const ModelSpec& model, int index) {
  const std::string stored = fmt::format("transformer.h.{}.", index - 1);
  return {.norm1 = stored + "ln_1",
          .norm2 = stored + "ln_2",
          .qkv = separate_qkv(model, stored + "attn.attention."),
          .proj = StoredRows::transpose_of(stored + "attn.attention.out_proj"),
          .fc1 = stored + "mlp.c_fc",
          .fc2 = StoredRows::transpose_of(stored + "mlp.c_proj"),
          .qkv_bias = false,
          .activation = gelu_by_tanh,
          .scaled_scores = false,
          .window = index % 2 == 0 ? model.attention_window : 0};
}

std::unique_ptr<Layer> build_gpt_neo(const LayerContext& context, int index) {
  if (index == 0)
    return std::make_unique<PositionedEmbedding>(context, "transformer.wte.weight", "transformer.wpe.weight");
  if (index <= context.model.layers)
    return std::make_unique<LayerNormBlock>(context, index, gpt_neo_block(context.model, index));
  return std::make_unique<NormedHead<LayerNorm>>(context, "transformer.ln_f", "lm_head.weight",
                                                 "transformer.wte.weight");
}

}  // namespace

ModelFamily gpt_neo_family() {
  // Older files hold the masks of every block.
  return {"gpt-neo",
          check_split,
          build_gpt_neo,
          "transformer.",
          {".attn.attention.bias", ".attn.attention.masked_bias"}};
}

}  // namespace sailor
