// OPT (Zhang et al., 2022): learned positions of which the first two rows belong to no token, pre-norm
// blocks, ReLU MLP, biases everywhere, final norm. Parameters are those of gpt2.cpp, with 0.position.weight
// [positions + 2, D].
#include <fmt/format.h>

#include "planner/spec/model_family.h"
#include "trainer/model/ends.h"
#include "trainer/model/layer_norm_block.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

LayerNormBlockSpec opt_block(const ModelSpec& model, int index) {
  const std::string stored = fmt::format("model.decoder.layers.{}.", index - 1);
  return {.norm1 = stored + "self_attn_layer_norm",
          .norm2 = stored + "final_layer_norm",
          .qkv = separate_qkv(model, stored + "self_attn."),
          .proj = StoredRows::transpose_of(stored + "self_attn.out_proj"),
          .fc1 = stored + "fc1",
          .fc2 = StoredRows::transpose_of(stored + "fc2"),
          .activation = at::relu};
}

std::unique_ptr<Layer> build_opt(const LayerContext& context, int index) {
  const std::string tokens = "model.decoder.embed_tokens.weight";
  if (index == 0) {
    return std::make_unique<PositionedEmbedding>(context, tokens, "model.decoder.embed_positions.weight",
                                                 find_family("opt")->position_offset);
  }
  if (index <= context.model.layers)
    return std::make_unique<LayerNormBlock>(context, index, opt_block(context.model, index));
  return std::make_unique<NormedHead<LayerNorm>>(context, "model.decoder.final_layer_norm", "lm_head.weight",
                                                 tokens);
}

}  // namespace

ModelFamily opt_family() {
  return {"opt", check_split, build_opt, "model.", {}};
}

}  // namespace sailor
