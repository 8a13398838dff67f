// GPT-Neo (Black et al., 2021): as GPT-2, but scores are not scaled, queries, keys and values have no biases,
// and in every second block (2, 4, ...) a token attends to the last `attention_window` tokens only.
// Parameters are those of gpt2.cpp without i.qkv.bias.
#include <fmt/format.h>

#include "trainer/model/attention.h"
#include "trainer/model/dropout.h"
#include "trainer/model/ends.h"
#include "trainer/model/linear.h"
#include "trainer/model/norms.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

class GptNeoBlock : public Layer {
 public:
  GptNeoBlock(const LayerContext& context, int index)
      : GptNeoBlock(ParameterMaker(context, index, parameters_), context.model,
                    fmt::format("transformer.h.{}.", index - 1),
                    index % 2 == 0 ? context.model.attention_window : 0) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor attended = x + dropout_(attention(norm1_(x)), batch, DropoutSite::attention);
    return attended + dropout_(fc2_(at::gelu(fc1_(norm2_(attended)), "tanh")), batch, DropoutSite::mlp);
  }

 private:
  GptNeoBlock(ParameterMaker make, const ModelSpec& model, const std::string& stored, int64_t window)
      : dropout_(make),
        size_(model.hidden / model.heads),
        window_(window),
        norm1_(make, "norm1", stored + "ln_1"),
        qkv_(make, "qkv", 3 * model.hidden, separate_qkv(model, stored + "attn.attention."), false),
        proj_(make, "proj", model.hidden, StoredRows::transpose_of(stored + "attn.attention.out_proj"), true),
        norm2_(make, "norm2", stored + "ln_2"),
        fc1_(make, "fc1", model.feed_forward, stored + "mlp.c_fc", true),
        fc2_(make, "fc2", model.feed_forward, StoredRows::transpose_of(stored + "mlp.c_proj"), true) {}

  at::Tensor attention(const at::Tensor& x) const {
    const at::Tensor qkv = qkv_(x);
    const int64_t heads = qkv.size(2) / (3 * size_);
    return proj_(merge_heads(attend(split_heads(qkv, heads, heads), /*scale=*/1.0, window_)));
  }

  Dropout dropout_;
  int64_t size_;    // of a head
  int64_t window_;  // 0 = all tokens before
  LayerNorm norm1_;
  OutputSplitLinear qkv_;
  InputSplitLinear proj_;
  LayerNorm norm2_;
  OutputSplitLinear fc1_;
  InputSplitLinear fc2_;
};

std::unique_ptr<Layer> build_gpt_neo(const LayerContext& context, int index) {
  if (index == 0)
    return std::make_unique<PositionedEmbedding>(context, "transformer.wte.weight", "transformer.wpe.weight");
  if (index <= context.model.layers) return std::make_unique<GptNeoBlock>(context, index);
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
