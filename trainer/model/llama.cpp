// Llama (Touvron et al., 2023): rotary positions, RMSNorm, gated MLP (SwiGLU), grouped-query attention, no
// biases.
//
// Parameters (D hidden, F feed_forward, H heads, K key and value heads of size D / H, V padded vocabulary; *
// = sharded along dimension 0), with layer i:
//   0.token.weight* [V, D]
//   i.norm1.weight [D]      i.qkv.weight* [D + 2 K D / H, D]: rows [kv head][its queries, k, v][dimension]
//   i.proj.weight* [D, D], stored [in, out]
//   i.norm2.weight [D]      i.gate_up.weight* [2F, D]: rows gate 0, up 0, gate 1, up 1, ...
//   i.down.weight* [F, D], stored [in, out]
//   (layers + 1).norm.weight [D]             (layers + 1).head.weight* [V, D], or the embedding's when tied
#include <fmt/format.h>

#include <cmath>

#include "planner/spec/error.h"
#include "trainer/model/attention.h"
#include "trainer/model/dropout.h"
#include "trainer/model/ends.h"
#include "trainer/model/linear.h"
#include "trainer/model/norms.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

// One for all blocks of a rank.
RotaryTable rotary_table(const LayerContext& context) {
  const ModelSpec& model = context.model;
  if (context.listing) return {};
  const at::TensorOptions options = at::TensorOptions(context.device).dtype(context.dtype);
  if (!context.shared) return {model.sequence, model.hidden / model.heads, model.rotary_base, options};
  at::Tensor& cosine = (*context.shared)["rotary.cosine"];
  at::Tensor& sine = (*context.shared)["rotary.sine"];
  if (!cosine.defined()) {
    const RotaryTable made(model.sequence, model.hidden / model.heads, model.rotary_base, options);
    cosine = made.cosine;
    sine = made.sine;
  }
  RotaryTable table;
  table.cosine = cosine;
  table.sine = sine;
  return table;
}

class LlamaBlock : public Layer {
 public:
  LlamaBlock(const LayerContext& context, int index)
      : LlamaBlock(ParameterMaker(context, index, parameters_), context,
                   fmt::format("model.layers.{}.", index - 1)) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor attended = x + dropout_(attention(norm1_(x)), batch, DropoutSite::attention);
    return attended + dropout_(mlp(norm2_(attended)), batch, DropoutSite::mlp);
  }

 private:
  LlamaBlock(ParameterMaker make, const LayerContext& context, const std::string& stored)
      : dropout_(make),
        heads_(context.model.heads / context.tp_size()),
        kv_heads_(context.model.key_value_heads() / context.tp_size()),
        size_(context.model.hidden / context.model.heads),
        rotary_(rotary_table(context)),
        norm1_(make, "norm1", stored + "input_layernorm"),
        qkv_(make, "qkv", size_ * (context.model.heads + 2 * context.model.key_value_heads()),
             separate_qkv(context.model, stored + "self_attn."), false),
        proj_(make, "proj", context.model.hidden, StoredRows::transpose_of(stored + "self_attn.o_proj"),
              false),
        norm2_(make, "norm2", stored + "post_attention_layernorm"),
        gate_up_(
            make, "gate_up", 2 * context.model.feed_forward,
            {{{stored + "mlp.gate_proj", 0, 1}, {stored + "mlp.up_proj", 0, 1}}, context.model.feed_forward},
            false),
        down_(make, "down", context.model.feed_forward, StoredRows::transpose_of(stored + "mlp.down_proj"),
              false) {}

  at::Tensor attention(const at::Tensor& x) const {
    Heads heads = split_heads(qkv_(x), heads_, kv_heads_);
    heads.query = rotary_.rotate(heads.query);
    heads.key = rotary_.rotate(heads.key);
    return proj_(merge_heads(attend(heads, 1 / std::sqrt(static_cast<double>(size_)))));
  }
  at::Tensor mlp(const at::Tensor& x) const {
    const at::Tensor both = gate_up_(x);
    const at::Tensor pairs = both.view({both.size(0), both.size(1), both.size(2) / 2, 2});
    return down_(at::silu(pairs.select(3, 0)) * pairs.select(3, 1));
  }

  Dropout dropout_;
  int64_t heads_, kv_heads_;  // of this rank
  int64_t size_;              // of a head
  RotaryTable rotary_;
  RmsNorm norm1_;
  OutputSplitLinear qkv_;
  InputSplitLinear proj_;
  RmsNorm norm2_;
  OutputSplitLinear gate_up_;
  InputSplitLinear down_;
};

void check_llama(const ModelSpec& model, int tp) {
  check_split(model, tp);
  if (model.hidden / model.heads % 2 != 0) {
    throw InputError(
        fmt::format("model.heads: rotary positions need heads of even size, and hidden {} / heads "
                    "{} is odd",
                    model.hidden, model.heads));
  }
}

std::unique_ptr<Layer> build_llama(const LayerContext& context, int index) {
  if (index == 0) return std::make_unique<TokenEmbedding>(context, "model.embed_tokens.weight");
  if (index <= context.model.layers) return std::make_unique<LlamaBlock>(context, index);
  return std::make_unique<NormedHead<RmsNorm>>(context, "model.norm", "lm_head.weight",
                                               "model.embed_tokens.weight");
}

}  // namespace

ModelFamily llama_family() {
  // Older files hold the speeds of the rotation.
  return {"llama", check_llama, build_llama, "model.", {".rotary_emb.inv_freq"}};
}

}  // namespace sailor
