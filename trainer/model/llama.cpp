#include <cmath>

#include "trainer/model/activations.h"
#include "trainer/model/attention.h"
#include "trainer/model/dropout.h"
#include "trainer/model/ends.h"
#include "trainer/model/linear.h"
#include "trainer/model/norms.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

class LlamaBlock : public Layer {
 public:
  LlamaBlock(const LayerContext& context, int index)
      : LlamaBlock(ParameterMaker(context, index, parameters_)) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor attended = x + dropout_(attention(norm1_(x)), batch, DropoutSite::attention);
    return attended + dropout_(mlp(norm2_(attended)), batch, DropoutSite::mlp);
  }

 private:
  explicit LlamaBlock(ParameterMaker make)
      : dropout_(make),
        heads_(make.model().heads / make.context().tp_size()),
        kv_heads_(make.model().key_value_heads() / make.context().tp_size()),
        size_(make.model().hidden / make.model().heads),
        rotary_(make.context(), size_),
        norm1_(make, "norm1"),
        qkv_(make, "qkv"),
        proj_(make, "proj"),
        norm2_(make, "norm2"),
        gate_up_(make, "gate_up"),
        down_(make, "down") {}

  at::Tensor attention(const at::Tensor& x) const {
    Heads heads = split_heads(qkv_(x), heads_, kv_heads_);
    heads.query = rotary_.rotate(heads.query);
    heads.key = rotary_.rotate(heads.key);
    return proj_(merge_heads(attend(heads, 1 / std::sqrt(static_cast<double>(size_)))));
  }
  at::Tensor mlp(const at::Tensor& x) const {
    const at::Tensor both = gate_up_(x);
    const at::Tensor pairs = both.view({both.size(0), both.size(1), both.size(2) / 2, 2});
    return down_(swish(pairs.select(3, 0)) * pairs.select(3, 1));
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

}  // namespace

std::unique_ptr<Layer> build_llama(const LayerContext& context, int index) {
  if (index == 0) return std::make_unique<TokenEmbedding>(context);
  if (index > context.model.layers) return std::make_unique<NormedHead<RmsNorm>>(context);
  return std::make_unique<LlamaBlock>(context, index);
}

}  // namespace sailor
