#include "trainer/checkpoint/adapter_directory.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/stored_rows.h"

namespace sailor {
namespace {

constexpr const char* kPeftPrefix = "base_model.model.";

// Do the model's directories store weights as [inputs, outputs]?
bool stores_inputs_first(const ModelSpec& model) {
  for (const ParameterSpec& parameter : layer_parameters(model, 1, model.vocabulary))
    if (parameter.rows_are_inputs) return !parameter.stored.transposed;
  return false;
}

std::string adapter_config(const ModelSpec& model, const LoraSpec& lora) {
  nlohmann::ordered_json json = {{"peft_type", "LORA"},
                                 {"task_type", "CAUSAL_LM"},
                                 {"base_model_name_or_path", model.from},
                                 {"r", lora.r},
                                 {"lora_alpha", lora.alpha},
                                 {"lora_dropout", 0.0},
                                 {"target_modules", lora.target_modules},
                                 {"fan_in_fan_out", stores_inputs_first(model)},
                                 {"bias", "none"},
                                 {"modules_to_save", nullptr},
                                 {"use_rslora", false},
                                 {"inference_mode", true}};
  if (lora.alpha == std::floor(lora.alpha)) json["lora_alpha"] = static_cast<int64_t>(lora.alpha);
  return json.dump(2) + "\n";
}

}  // namespace

void export_adapters(const std::string& directory, const ModelSpec& model, const LoraSpec& lora,
                     at::ScalarType type, const std::function<at::Tensor(const ParameterSpec&)>& whole) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw std::runtime_error(fmt::format("cannot make {}: {}", directory, error.message()));
  const std::vector<ParameterSpec> adapters = trained_parameters(model, lora, model.vocabulary);
  std::vector<StoredTensor> tensors;
  for (const ParameterSpec& adapter : adapters) {
    for (const std::string& name : stored_names(adapter))
      tensors.push_back({kPeftPrefix + name, stored_dtype(type), stored_shape(adapter, name)});
  }
  SafetensorsWriter writer(directory + "/adapter_model.safetensors", tensors, {{"format", "pt"}});
  for (const ParameterSpec& adapter : adapters) {
    for (const auto& [name, tensor] : stored_tensors(adapter, whole(adapter))) {
      const at::Tensor converted = tensor.to(type).contiguous();
      writer.write(kPeftPrefix + name, converted.data_ptr(), static_cast<int64_t>(converted.nbytes()));
    }
  }
  writer.finish();
  write_file_atomically(directory + "/adapter_config.json", adapter_config(model, lora));
}

at::Tensor with_merged_adapters(const ParameterSpec& weight, const at::Tensor& value, const ModelSpec& model,
                                const LoraSpec& lora,
                                const std::function<at::Tensor(const ParameterSpec&)>& whole) {
  at::Tensor merged = value;
  for (const LoraAdapter& adapter : adapters_of(weight, model, lora)) {
    if (merged.is_same(value)) merged = value.clone();
    const at::Tensor a = whole(adapter.a).to(value.scalar_type()),
                     b = whole(adapter.b).to(value.scalar_type());
    if (weight.rows_are_inputs) {
      merged.add_(at::matmul(a, b.t()), lora.scale());
      continue;
    }
    const int64_t groups = weight.stored.groups;
    merged.view({groups, weight.rows / groups, weight.columns})
        .narrow(1, adapter.first, adapter.rows)
        .add_(at::matmul(b, a).view({groups, adapter.rows, weight.columns}), lora.scale());
  }
  return merged;
}

}  // namespace sailor
