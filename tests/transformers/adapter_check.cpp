#include "tests/transformers/adapter_check.h"

#include <torch/csrc/autograd/autograd.h>

#include <random>

#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "trainer/checkpoint/adapter_directory.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/stored_rows.h"
#include "trainer/model/initial_values.h"
#include "trainer/model/registry.h"

namespace sailor {
namespace {

LoraSpec draw_lora(const ModelSpec& model, uint64_t seed) {
  std::mt19937_64 random(seed);
  LoraSpec lora;
  lora.r = static_cast<int>(1 + random() % 9);
  lora.alpha = static_cast<double>(1 + random() % 40);
  const std::vector<std::string> modules = last_words(linear_modules(model));
  while (lora.target_modules.empty()) {
    for (const std::string& module : modules)
      if (random() % 3 != 0) lora.target_modules.push_back(module);
  }
  return lora;
}

void write_computed(const std::string& path, const std::map<std::string, at::Tensor>& values) {
  std::vector<StoredTensor> tensors;
  for (const auto& [name, value] : values) tensors.push_back({name, "F64", value.sizes().vec()});
  SafetensorsWriter writer(path, tensors, {{"format", "pt"}});
  for (const StoredTensor& tensor : writer.tensors()) {
    const at::Tensor value = values.at(tensor.name).contiguous();
    writer.write(tensor.name, value.data_ptr(), static_cast<int64_t>(value.nbytes()));
  }
  writer.finish();
}

}  // namespace

Computed compute(const ModelSpec& model, const StoredModel& weights, const std::optional<LoraSpec>& lora,
                 const at::Tensor& ids, at::ScalarType dtype) {
  LayerContext context;
  context.model = model;
  context.padded_vocabulary = model.vocabulary;
  context.dtype = dtype;
  context.lora = lora;
  context.weights = &weights;
  std::map<std::string, at::Tensor> shared;
  context.shared = &shared;
  const int64_t tokens = ids.size(1) - 1;
  const Batch batch{ids.narrow(1, 0, tokens).contiguous(), ids.narrow(1, 1, tokens).contiguous()};
  std::vector<std::unique_ptr<Layer>> layers;
  at::Tensor x;
  for (int i = 0; i < model.num_all_layers(); ++i) {
    layers.push_back(build_layer(context, i));
    for (const Parameter& parameter : layers.back()->parameters()) {
      if (!lora || parameter.frozen || !parameter.name.ends_with("lora_B")) continue;
      parameter.value.detach().copy_(
          normal_values(/*seed=*/1, parameter.name, 0, parameter.value.numel(), 0, 0.1, dtype)
              .view_as(parameter.value));
    }
    if (i <= model.layers) x = layers.back()->forward(x, batch);
  }
  Computed result;
  result.logits = layers.back()->logits(x).detach();
  result.loss = layers.back()->forward(x, batch) / static_cast<double>(batch.targets.numel());
  torch::autograd::backward({result.loss}, {});
  for (const auto& layer : layers) {
    for (const Parameter& parameter : layer->parameters()) {
      result.values[parameter.name] = parameter.value.detach();
      if (!parameter.frozen) result.gradients[parameter.name] = parameter.value.grad();
    }
  }
  return result;
}

void write_adapters(const std::string& directory, const ModelSpec& model, const StoredModel& weights,
                    const at::Tensor& ids, uint64_t seed) {
  const LoraSpec lora = draw_lora(model, seed);
  const Computed ours = compute(model, weights, lora, ids, at::kDouble);
  const auto value_of = [&](const ParameterSpec& spec) { return ours.values.at(spec.name); };
  export_adapters(directory + "/adapter", model, lora, at::kDouble, value_of);
  export_model(directory + "/merged", model, at::kDouble, [&](const ParameterSpec& weight) {
    return with_merged_adapters(weight, value_of(weight), model, lora, value_of);
  });
  std::map<std::string, at::Tensor> computed = {{"logits", ours.logits}, {"loss", ours.loss.detach()}};
  for (const ParameterSpec& adapter : trained_parameters(model, lora, model.vocabulary)) {
    for (const auto& [name, gradient] : stored_tensors(adapter, ours.gradients.at(adapter.name)))
      computed["gradient.base_model.model." + name] = gradient;
  }
  write_computed(directory + "/adapter/computed.safetensors", computed);
}

}  // namespace sailor
