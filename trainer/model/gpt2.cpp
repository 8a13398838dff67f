#include "trainer/model/gpt2.h"

#include <fmt/format.h>

#include <cmath>

#include "planner/spec/error.h"
#include "trainer/model/initial_values.h"
#include "trainer/model/torch_compat.h"
#include "trainer/parallel/tensor_parallel.h"

namespace sailor {
namespace {

constexpr double kDeviation = 0.02;  // of initial weights, as GPT-2
constexpr double kNormEpsilon = 1e-5;

// Shared by the three kinds of layer: making parameters.
class Gpt2Layer : public Layer {
 protected:
  Gpt2Layer(const LayerContext& context, int index)
      : model_(context.model),
        tp_(context.tp),
        dtype_(context.dtype),
        seed_(context.seed),
        tp_size_(context.tp_size()),
        tp_rank_(context.tp_rank()),
        index_(index) {}

  at::Tensor norm_weight(const std::string& name) {
    return add(name, at::ones({model_.hidden}, dtype_), false, false);
  }
  at::Tensor bias(const std::string& name) {
    return add(name, at::zeros({model_.hidden}, dtype_), false, false);
  }
  at::Tensor sharded_bias(const std::string& name, int64_t rows) {
    return add(name, at::zeros({rows / tp_size_}, dtype_), true, false);
  }
  // [rows, hidden], of which `real_rows` are not padding.
  at::Tensor matrix(const std::string& name, int64_t rows, int64_t real_rows, double deviation,
                    bool sharded = true) {
    const int64_t held = sharded ? rows / tp_size_ : rows;
    const int64_t first = sharded ? held * tp_rank_ : 0;
    const int64_t real = std::clamp<int64_t>(real_rows - first, 0, held);
    at::Tensor value = at::zeros({held, model_.hidden}, dtype_);
    value.narrow(0, 0, real)
        .copy_(normal_values(seed_, full_name(name), first * model_.hidden, real * model_.hidden, 0.0,
                             deviation, dtype_)
                   .view({real, model_.hidden}));
    return add(name, value, sharded, true);
  }
  at::Tensor matrix(const std::string& name, int64_t rows, double deviation = kDeviation) {
    return matrix(name, rows, rows, deviation);
  }
  // Weights that write into the residual stream start smaller, by the number of writers.
  double residual_deviation() const { return kDeviation / std::sqrt(2.0 * model_.layers); }

  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const {
    return at::layer_norm(x, {model_.hidden}, weight, bias, kNormEpsilon);
  }

  const ModelSpec model_;
  Communicator* const tp_;
  const at::ScalarType dtype_;
  const uint64_t seed_;
  const int tp_size_;
  const int tp_rank_;
  const int index_;

 private:
  std::string full_name(const std::string& name) const { return fmt::format("{}.{}", index_, name); }
  at::Tensor add(const std::string& name, at::Tensor value, bool sharded, bool decay) {
    value.set_requires_grad(true);
    parameters_.push_back({full_name(name), index_, sharded, decay, value});
    return value;
  }
};

class Embedding : public Gpt2Layer {
 public:
  explicit Embedding(const LayerContext& context, int index)
      : Gpt2Layer(context, index),
        token_(matrix("token.weight", context.padded_vocabulary, model_.vocabulary, kDeviation)),
        position_(
            matrix("position.weight", model_.sequence, model_.sequence, kDeviation / 2, /*sharded=*/false)) {}

  at::Tensor forward(const at::Tensor&, const Batch& batch) override {
    return vocabulary_embedding(token_, batch.inputs, tp_) + position_.narrow(0, 0, batch.inputs.size(1));
  }

 private:
  at::Tensor token_, position_;
};

class Block : public Gpt2Layer {
 public:
  explicit Block(const LayerContext& context, int index)
      : Gpt2Layer(context, index),
        norm1_weight_(norm_weight("norm1.weight")),
        norm1_bias_(bias("norm1.bias")),
        qkv_weight_(matrix("qkv.weight", 3 * model_.hidden)),
        qkv_bias_(sharded_bias("qkv.bias", 3 * model_.hidden)),
        proj_weight_(matrix("proj.weight", model_.hidden, residual_deviation())),
        proj_bias_(bias("proj.bias")),
        norm2_weight_(norm_weight("norm2.weight")),
        norm2_bias_(bias("norm2.bias")),
        fc1_weight_(matrix("fc1.weight", model_.feed_forward)),
        fc1_bias_(sharded_bias("fc1.bias", model_.feed_forward)),
        fc2_weight_(matrix("fc2.weight", model_.feed_forward, residual_deviation())),
        fc2_bias_(bias("fc2.bias")) {}

  at::Tensor forward(const at::Tensor& x, const Batch&) override {
    const at::Tensor attended = x + attention(norm(x, norm1_weight_, norm1_bias_));
    return attended + mlp(norm(attended, norm2_weight_, norm2_bias_));
  }

 private:
  at::Tensor attention(const at::Tensor& x) const {
    const int64_t batch = x.size(0), tokens = x.size(1);
    const int64_t heads = model_.heads / tp_size_, dim = model_.hidden / model_.heads;
    const at::Tensor qkv = at::linear(enter_tensor_parallel(x, tp_), qkv_weight_, qkv_bias_)
                               .view({batch, tokens, heads, 3, dim})
                               .permute({3, 0, 2, 1, 4});  // [q k v][batch][head][token][dim]
    const at::Tensor mixed =
        causal_attention(qkv[0], qkv[1], qkv[2]).transpose(1, 2).reshape({batch, tokens, heads * dim});
    return leave_tensor_parallel(at::matmul(mixed, proj_weight_), tp_) + proj_bias_;
  }
  at::Tensor mlp(const at::Tensor& x) const {
    const at::Tensor inner =
        at::gelu(at::linear(enter_tensor_parallel(x, tp_), fc1_weight_, fc1_bias_), "tanh");
    return leave_tensor_parallel(at::matmul(inner, fc2_weight_), tp_) + fc2_bias_;
  }

  at::Tensor norm1_weight_, norm1_bias_, qkv_weight_, qkv_bias_, proj_weight_, proj_bias_;
  at::Tensor norm2_weight_, norm2_bias_, fc1_weight_, fc1_bias_, fc2_weight_, fc2_bias_;
};

class Head : public Gpt2Layer {
 public:
  explicit Head(const LayerContext& context, int index)
      : Gpt2Layer(context, index),
        norm_weight_(norm_weight("norm.weight")),
        norm_bias_(bias("norm.bias")),
        head_(matrix("head.weight", context.padded_vocabulary, model_.vocabulary, kDeviation)) {}

  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    const at::Tensor normed = enter_tensor_parallel(norm(x, norm_weight_, norm_bias_), tp_);
    const at::Tensor logits = at::linear(normed.reshape({-1, model_.hidden}), head_);
    return vocabulary_cross_entropy(logits, batch.targets.reshape({-1}), model_.vocabulary, tp_);
  }

 private:
  at::Tensor norm_weight_, norm_bias_, head_;
};

}  // namespace

void check_gpt2(const ModelSpec& model, int tp) {
  const auto divides = [&](const char* key, int value) {
    if (value % tp != 0) {
      throw InputError(fmt::format(
          "model.{}: {} cannot be split over {} GPUs of a TP group; choose a plan whose TP degrees "
          "divide it",
          key, value, tp));
    }
  };
  if (model.hidden % model.heads != 0) {
    throw InputError(
        fmt::format("model.heads: {} does not divide model.hidden {}", model.heads, model.hidden));
  }
  divides("heads", model.heads);
  divides("feed_forward", model.feed_forward);
}

std::unique_ptr<Layer> build_gpt2_layer(const LayerContext& context, int index) {
  if (index == 0) return std::make_unique<Embedding>(context, index);
  if (index <= context.model.layers) return std::make_unique<Block>(context, index);
  return std::make_unique<Head>(context, index);
}

}  // namespace sailor
