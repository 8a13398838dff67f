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

class GptNeoxBlock : public Layer {
 public:
  GptNeoxBlock(const LayerContext& context, int index)
      : GptNeoxBlock(ParameterMaker(context, index, parameters_)) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor attended = x + dropout_(attention(norm1_(x)), batch, DropoutSite::attention);
    const at::Tensor& mlp_reads = parallel_ ? x : attended;
    return attended + dropout_(fc2_(gelu_by_erf(fc1_(norm2_(mlp_reads)))), batch, DropoutSite::mlp);
  }

 private:
  explicit GptNeoxBlock(ParameterMaker make)
      : dropout_(make),
        parallel_(make.model().parallel_residual),
        heads_(make.model().heads / make.context().tp_size()),
        size_(make.model().hidden / make.model().heads),
        rotary_(make.context(), make.model().rotated_elements()),
        norm1_(make, "norm1"),
        qkv_(make, "qkv"),
        proj_(make, "proj"),
        norm2_(make, "norm2"),
        fc1_(make, "fc1"),
        fc2_(make, "fc2") {}

  at::Tensor attention(const at::Tensor& x) const {
    Heads heads = split_heads(qkv_(x), heads_, heads_);
    heads.query = rotary_.rotate(heads.query);
    heads.key = rotary_.rotate(heads.key);
    return proj_(merge_heads(attend(heads, 1 / std::sqrt(static_cast<double>(size_)))));
  }

  Dropout dropout_;
  bool parallel_;
  int64_t heads_;  // of this rank
  int64_t size_;   // of a head
  RotaryTable rotary_;
  LayerNorm norm1_;
  OutputSplitLinear qkv_;
  InputSplitLinear proj_;
  LayerNorm norm2_;
  OutputSplitLinear fc1_;
  InputSplitLinear fc2_;
};

}  // namespace

std::unique_ptr<Layer> build_gpt_neox(const LayerContext& context, int index) {
  if (index == 0) return std::make_unique<TokenEmbedding>(context);
  if (index > context.model.layers) return std::make_unique<NormedHead<LayerNorm>>(context);
  return std::make_unique<GptNeoxBlock>(context, index);
}

}  // namespace sailor
