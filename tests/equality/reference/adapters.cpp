#include "tests/equality/reference/adapters.h"

namespace sailor::equality {
namespace {

// Every block's queries, keys and values: [kv head][its queries, key, value][size]; zero where a module has
// no adapter.
at::Tensor qkv_rows(const ModelSpec& model, const at::Tensor& like, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v) {
  const int64_t groups = model.key_value_heads(), queries = model.heads / groups;
  const int64_t size = like.size(0) / (groups * (queries + 2)), hidden = like.size(1);
  const auto heads = [&](const at::Tensor& rows, int64_t count) {
    return rows.defined() ? rows.view({groups, count, size, hidden})
                          : at::zeros({groups, count, size, hidden}, like.options());
  };
  return at::cat({heads(q, queries), heads(k, 1), heads(v, 1)}, 1).view(like.sizes());
}

}  // namespace

bool is_adapter(const std::string& name) {
  return name.find(".lora_") != std::string::npos;
}

Weights with_adapters(const JobSpec& job, const Weights& frozen, const Weights& adapters) {
  Weights weights = frozen;
  for (int layer = 1; layer <= job.model.layers; ++layer) {
    const std::string at = std::to_string(layer) + ".";
    const auto pair = [&](const std::string& module) {
      const auto a = adapters.find(at + module + ".lora_A"), b = adapters.find(at + module + ".lora_B");
      return a == adapters.end() ? std::pair<at::Tensor, at::Tensor>() : std::pair(a->second, b->second);
    };
    const auto by_outputs = [&](const std::string& module) {
      const auto [a, b] = pair(module);
      return a.defined() ? at::matmul(b, a) : at::Tensor();
    };
    const auto add = [&](const std::string& weight, const at::Tensor& product) {
      if (!product.defined()) return;
      at::Tensor& value = weights.at(at + weight + ".weight");
      value = value + job.training.lora->alpha / job.training.lora->r * product;
    };
    const at::Tensor& qkv = frozen.at(at + "qkv.weight");
    const at::Tensor q = by_outputs("qkv.q_proj"), k = by_outputs("qkv.k_proj"), v = by_outputs("qkv.v_proj");
    if (q.defined() || k.defined() || v.defined()) add("qkv", qkv_rows(job.model, qkv, q, k, v));
    if (job.model.gated_mlp) {
      const at::Tensor gate = by_outputs("gate_up.gate_proj"), up = by_outputs("gate_up.up_proj");
      const at::Tensor none = at::zeros({job.model.feed_forward, job.model.hidden}, qkv.options());
      if (gate.defined() || up.defined())
        add("gate_up", at::stack({gate.defined() ? gate : none, up.defined() ? up : none}, 1)
                           .view({2 * job.model.feed_forward, job.model.hidden}));
    }
    // One module each, or one for all of the matrix.
    for (const char* module : {"qkv.c_attn", "qkv.query_key_value", "qkv.qkv_proj", "qkv.qkv", "fc1.c_fc",
                               "fc1.fc1", "fc1.dense_h_to_4h", "gate_up.gate_up_proj", "gate_up.gate_up"}) {
      const std::string name = module;
      add(name.substr(0, name.find('.')), by_outputs(name));
    }
    for (const char* module : {"proj.c_proj", "proj.out_proj", "proj.dense", "proj.o_proj", "proj.proj",
                               "fc2.c_proj", "fc2.fc2", "fc2.dense_4h_to_h", "down.down_proj", "down.down"}) {
      const std::string name = module;
      const auto [a, b] = pair(name);
      if (a.defined()) add(name.substr(0, name.find('.')), at::matmul(a, b.t()));
    }
  }
  return weights;
}

}  // namespace sailor::equality
