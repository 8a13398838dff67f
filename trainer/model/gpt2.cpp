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

#include <cmath>

#include "trainer/model/attention.h"
#include "trainer/model/dropout.h"
#include "trainer/model/ends.h"
#include "trainer/model/linear.h"
#include "trainer/model/norms.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

class Gpt2Block : public Layer {
 public:
  Gpt2Block(const LayerContext& context, int index)
      : Gpt2Block(ParameterMaker(context, index, parameters_), context.model,
                  fmt::format("transformer.h.{}.", index - 1)) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor attended = x + dropout_(attention(norm1_(x)), batch, DropoutSite::attention);
    return attended + dropout_(fc2_(at::gelu(fc1_(norm2_(attended)), "tanh")), batch, DropoutSite::mlp);
  }

 private:
  // The stored matrices are [in, out] throughout.
  Gpt2Block(ParameterMaker make, const ModelSpec& model, const std::string& stored)
      : dropout_(make),
        size_(model.hidden / model.heads),
        norm1_(make, "norm1", stored + "ln_1"),
        qkv_(make, "qkv", 3 * model.hidden, stored_qkv(model, stored + "attn.c_attn"), true),
        proj_(make, "proj", model.hidden, stored + "attn.c_proj", true),
        norm2_(make, "norm2", stored + "ln_2"),
        fc1_(make, "fc1", model.feed_forward, StoredRows::transpose_of(stored + "mlp.c_fc"), true),
        fc2_(make, "fc2", model.feed_forward, stored + "mlp.c_proj", true) {}

  // All queries, then all keys, then all values.
  static StoredRows stored_qkv(const ModelSpec& model, const std::string& tensor) {
    const int64_t size = model.hidden / model.heads, all = model.hidden;
    return {{{tensor, 0, size}, {tensor, all, size}, {tensor, 2 * all, size}}, model.heads, true};
  }

  at::Tensor attention(const at::Tensor& x) const {
    const at::Tensor qkv = qkv_(x);
    const int64_t heads = qkv.size(2) / (3 * size_);
    return proj_(
        merge_heads(attend(split_heads(qkv, heads, heads), 1 / std::sqrt(static_cast<double>(size_)))));
  }

  Dropout dropout_;
  int64_t size_;  // of a head
  LayerNorm norm1_;
  OutputSplitLinear qkv_;
  InputSplitLinear proj_;
  LayerNorm norm2_;
  OutputSplitLinear fc1_;
  InputSplitLinear fc2_;
};

std::unique_ptr<Layer> build_gpt2(const LayerContext& context, int index) {
  if (index == 0)
    return std::make_unique<PositionedEmbedding>(context, "transformer.wte.weight", "transformer.wpe.weight");
  if (index <= context.model.layers) return std::make_unique<Gpt2Block>(context, index);
  return std::make_unique<NormedHead<LayerNorm>>(context, "transformer.ln_f", "lm_head.weight",
                                                 "transformer.wte.weight");
}

}  // namespace

ModelFamily gpt2_family() {
  // Older files hold the causal mask of every block.
  return {"gpt2", check_split, build_gpt2, "transformer.", {".attn.bias", ".attn.masked_bias"}};
}

}  // namespace sailor
