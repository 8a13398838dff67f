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

#include <nlohmann/json.hpp>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

using Bias = LayerParameters::Bias;

void llama_parameters(LayerParameters& layer) {
  const ModelSpec& model = layer.model();
  const std::string tokens = "model.embed_tokens.weight";
  if (layer.is_first()) {
    layer.token_embedding(tokens);
  } else if (layer.is_last()) {
    layer.rms_norm("norm", "model.norm");
    layer.head("lm_head.weight", tokens);
  } else {
    const std::string stored = fmt::format("model.layers.{}.", layer.layer() - 1);
    const int64_t size = model.hidden / model.heads;
    layer.rms_norm("norm1", stored + "input_layernorm");
    layer.output_split("qkv", size * (model.heads + 2 * model.key_value_heads()),
                       separate_qkv(model, stored + "self_attn."), Bias::no);
    layer.input_split("proj", model.hidden, StoredRows::transpose_of(stored + "self_attn.o_proj"), Bias::no);
    layer.rms_norm("norm2", stored + "post_attention_layernorm");
    layer.output_split(
        "gate_up", 2 * model.feed_forward,
        {{{stored + "mlp.gate_proj", 0, 1}, {stored + "mlp.up_proj", 0, 1}}, model.feed_forward}, Bias::no);
    layer.input_split("down", model.feed_forward, StoredRows::transpose_of(stored + "mlp.down_proj"),
                      Bias::no);
  }
}

std::optional<ModelProblem> llama_problem(const ModelSpec& model) {
  if (model.hidden / model.heads % 2 == 0) return std::nullopt;
  return ModelProblem{"heads",
                      fmt::format("rotary positions need heads of even size, and hidden {} / heads {} is odd",
                                  model.hidden, model.heads)};
}

std::string add_llama_flags(const ModelSpec& model, std::vector<std::string>& flags) {
  flags.emplace_back("--position-embedding-type rope");
  flags.push_back(fmt::format("--rotary-base {:.0f}", model.rotary_base));
  return "";
}

void read_llama(const ModelConfig& config, ModelSpec& model) {
  config.require_flag("attention_bias", false, false);
  config.require_flag("mlp_bias", false, false);
  if (const auto heads = config.find("num_key_value_heads")) {
    model.kv_heads = heads->integer<int>(1, model.heads);
    if (model.heads % model.kv_heads != 0)
      heads->fail(fmt::format("does not divide num_attention_heads, {}", model.heads));
  }
  if (const auto width = config.find("head_dim");
      width && config.count("head_dim") != model.hidden / model.heads)
    width->fail("the trainer has heads of hidden_size / num_attention_heads only; choose another model");
  const RotarySettings rotary = read_rotary(config);
  if (rotary.base) model.rotary_base = rotary.base->number(1, 1e12);
  if (rotary.fraction && rotary.fraction->number(0, 1) != 1)
    rotary.fraction->fail(
        "in this family the trainer only supports rotary positions on whole heads; choose another model");
}

void write_llama(const ModelSpec& model, nlohmann::ordered_json& json) {
  using Json = nlohmann::ordered_json;
  json["num_key_value_heads"] = model.key_value_heads();
  json["head_dim"] = model.hidden / model.heads;
  json["rope_theta"] = model.rotary_base;  // where older releases look for it
  json["rope_parameters"] = Json{{"rope_theta", model.rotary_base}, {"rope_type", "default"}};
  json["attention_bias"] = json["mlp_bias"] = false;
}

}  // namespace

ModelFamily llama_family() {
  return {.name = "llama",
          .keys = {{.name = "kv_heads", .member = &ModelSpec::kv_heads, .least = 1, .most = 10'000'000},
                   rotary_base_key()},
          .gated_mlp = true,
          .problem = llama_problem,
          .parameters = llama_parameters,
          .add_megatron_flags = add_llama_flags,
          .config = {.model_type = "llama",
                     .architecture = "LlamaForCausalLM",
                     .layers = "num_hidden_layers",
                     .hidden = "hidden_size",
                     .heads = "num_attention_heads",
                     .feed_forward = "intermediate_size",
                     .positions = "max_position_embeddings",
                     .norm_epsilon = "rms_norm_eps",
                     .activation = "hidden_act",
                     .activations = {"silu", "swish"},
                     .read = read_llama,
                     .write = write_llama},
          .stored_prefix = "model.",
          // Older files hold the speeds of the rotation.
          .stored_buffers = {".rotary_emb.inv_freq"}};
}

}  // namespace sailor
