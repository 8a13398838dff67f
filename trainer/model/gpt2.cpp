// GPT-2: learned positions, pre-norm blocks, GELU (tanh) MLP, biases everywhere, final norm.
//
// Parameters (D hidden, F feed_forward, V padded vocabulary; * = sharded along dimension 0), with layer i:
//   0.token.weight* [V, D]          0.position.weight [positions, D]
//   i.norm1.{weight,bias} [D]       i.qkv.weight* [3D, D], i.qkv.bias* [3D]: rows [head][q, k, v][dimension]
//   i.proj.weight* [D, D], stored [in, out]; i.proj.bias [D]
//   i.norm2.{weight,bias} [D]       i.fc1.weight* [F, D], i.fc1.bias* [F]
//   i.fc2.weight* [F, D], stored [in, out]; i.fc2.bias [D]
//   (layers + 1).norm.{weight,bias} [D]      (layers + 1).head.weight* [V, D], or the embedding's when tied
// Rows of padding in V are zero, never trained, and their logits never counted.
#include <fmt/format.h>

#include "trainer/model/ends.h"
#include "trainer/model/layer_norm_block.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

// All queries, then all keys, then all values.
StoredRows stored_qkv(const ModelSpec& model, const std::string& tensor) {
  const int64_t size = model.hidden / model.heads, all = model.hidden;
  return {{{tensor, 0, size}, {tensor, all, size}, {tensor, 2 * all, size}}, model.heads, true};
}

// The stored matrices are [in, out] throughout.
LayerNormBlockSpec gpt2_block(const ModelSpec& model, int index) {
  const std::string stored = fmt::format("transformer.h.{}.", index - 1);
  return {.norm1 = stored + "ln_1",
          .norm2 = stored + "ln_2",
          .qkv = stored_qkv(model, stored + "attn.c_attn"),
          .proj = stored + "attn.c_proj",
          .fc1 = StoredRows::transpose_of(stored + "mlp.c_fc"),
          .fc2 = stored + "mlp.c_proj",
          .activation = gelu_by_tanh};
}

std::unique_ptr<Layer> build_gpt2(const LayerContext& context, int index) {
  if (index == 0)
    return std::make_unique<PositionedEmbedding>(context, "transformer.wte.weight", "transformer.wpe.weight");
  if (index <= context.model.layers)
    return std::make_unique<LayerNormBlock>(context, index, gpt2_block(context.model, index));
  return std::make_unique<NormedHead<LayerNorm>>(context, "transformer.ln_f", "lm_head.weight",
                                                 "transformer.wte.weight");
}

}  // namespace

ModelFamily gpt2_family() {
  // Older files hold the causal mask of every block.
  return {"gpt2", check_split, build_gpt2, "transformer.", {".attn.bias", ".attn.masked_bias"}};
}

}  // namespace sailor
