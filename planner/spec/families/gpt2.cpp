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

#include <nlohmann/json.hpp>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

using Bias = LayerParameters::Bias;

// All queries, then all keys, then all values.
StoredRows stored_qkv(const ModelSpec& model, const std::string& tensor) {
  const int64_t size = model.hidden / model.heads, all = model.hidden;
  return {{{tensor, 0, size}, {tensor, all, size}, {tensor, 2 * all, size}}, model.heads, true};
}

// The stored matrices are [in, out] throughout.
void gpt2_parameters(LayerParameters& layer) {
  const ModelSpec& model = layer.model();
  const std::string tokens = "transformer.wte.weight";
  if (layer.is_first()) {
    layer.token_embedding(tokens);
    layer.position_embedding("transformer.wpe.weight");
  } else if (layer.is_last()) {
    layer.layer_norm("norm", "transformer.ln_f");
    layer.head("lm_head.weight", tokens);
  } else {
    const std::string stored = fmt::format("transformer.h.{}.", layer.layer() - 1);
    layer.layer_norm("norm1", stored + "ln_1");
    layer.output_split("qkv", 3 * model.hidden, stored_qkv(model, stored + "attn.c_attn"), Bias::yes);
    layer.input_split("proj", model.hidden, stored + "attn.c_proj", Bias::yes);
    layer.layer_norm("norm2", stored + "ln_2");
    layer.output_split("fc1", model.feed_forward, StoredRows::transpose_of(stored + "mlp.c_fc"), Bias::yes);
    layer.input_split("fc2", model.feed_forward, stored + "mlp.c_proj", Bias::yes);
  }
}

void read_gpt2(const ModelConfig& config, ModelSpec&) {
  config.require_flag("scale_attn_weights", true, true);
  config.require_flag("scale_attn_by_inverse_layer_idx", false, false);
  config.require_flag("add_cross_attention", false, false);
}

void write_gpt2(const ModelSpec&, nlohmann::ordered_json& json) {
  // Dropout is a choice of a training, not of the model: what this one had is not written, nor is it read.
  json["embd_pdrop"] = json["attn_pdrop"] = json["resid_pdrop"] = 0.0;
}

}  // namespace

ModelFamily gpt2_family() {
  return {.name = "gpt2",
          .keys = {positions_key()},
          .learned_positions = true,
          .biases = true,
          .qkv_biases = true,
          .parameters = gpt2_parameters,
          .config = {.model_type = "gpt2",
                     .architecture = "GPT2LMHeadModel",
                     .layers = "n_layer",
                     .hidden = "n_embd",
                     .heads = "n_head",
                     .feed_forward = "n_inner",
                     .positions = "n_positions",
                     .norm_epsilon = "layer_norm_epsilon",
                     .activation = "activation_function",
                     .activations = {"gelu_new", "gelu_pytorch_tanh"},
                     .usually_tied = true,
                     .read = read_gpt2,
                     .write = write_gpt2},
          .stored_prefix = "transformer.",
          // Older files hold the causal mask of every block.
          .stored_buffers = {".attn.bias", ".attn.masked_bias"}};
}

}  // namespace sailor
