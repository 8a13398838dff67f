// OPT (Zhang et al., 2022): learned positions of which the first two rows belong to no token, pre-norm
// blocks, ReLU MLP, biases everywhere, final norm. Parameters are those of gpt2.cpp, with 0.position.weight
// [positions + 2, D].
#include <fmt/format.h>

#include <cmath>

#include "planner/spec/model_family.h"
#include "trainer/model/attention.h"
#include "trainer/model/dropout.h"
#include "trainer/model/ends.h"
#include "trainer/model/linear.h"
#include "trainer/model/norms.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

class OptBlock : public Layer {
 public:
  OptBlock(const LayerContext& context, int index)
      : OptBlock(ParameterMaker(context, index, parameters_), context.model,
                 fmt::format("model.decoder.layers.{}.", index - 1)) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor attended = x + dropout_(attention(norm1_(x)), batch, DropoutSite::attention);
    return attended + dropout_(fc2_(at::relu(fc1_(norm2_(attended)))), batch, DropoutSite::mlp);
  }

 private:
  OptBlock(ParameterMaker make, const ModelSpec& model, const std::string& stored)
      : dropout_(make),
        size_(model.hidden / model.heads),
        norm1_(make, "norm1", stored + "self_attn_layer_norm"),
        qkv_(make, "qkv", 3 * model.hidden, separate_qkv(model, stored + "self_attn."), true),
        proj_(make, "proj", model.hidden, StoredRows::transpose_of(stored + "self_attn.out_proj"), true),
        norm2_(make, "norm2", stored + "final_layer_norm"),
        fc1_(make, "fc1", model.feed_forward, stored + "fc1", true),
        fc2_(make, "fc2", model.feed_forward, StoredRows::transpose_of(stored + "fc2"), true) {}

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

std::unique_ptr<Layer> build_opt(const LayerContext& context, int index) {
  const std::string tokens = "model.decoder.embed_tokens.weight";
  if (index == 0) {
    return std::make_unique<PositionedEmbedding>(context, tokens, "model.decoder.embed_positions.weight",
                                                 find_family("opt")->position_offset);
  }
  if (index <= context.model.layers) return std::make_unique<OptBlock>(context, index);
  return std::make_unique<NormedHead<LayerNorm>>(context, "model.decoder.final_layer_norm", "lm_head.weight",
                                                 tokens);
}

}  // namespace

ModelFamily opt_family() {
  return {"opt", check_split, build_opt, "model.", {}};
}

}  // namespace sailor
