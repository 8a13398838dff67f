#include "planner/spec/lora_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/spec/model_family.h"

namespace sailor {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string without_weight(const std::string& name) {
  return name.substr(0, name.size() - kWeight.size());
}

// `self_attn.q_proj` of `model.layers.3.self_attn.q_proj.weight`. A model that no family can store has no
// names of modules: the trainer's own are used.
std::string module_of(const ParameterSpec& weight, const std::string& tensor) {
  const std::string block = fmt::format(".{}.", weight.layer - 1);
  const size_t at = tensor.find(block);
  if (at != std::string::npos) return without_weight(tensor.substr(at + block.size()));
  const std::string name = without_weight(weight.name);
  return name.substr(name.find('.') + 1);
}

std::string last_word(const std::string& module) {
  return module.substr(module.rfind('.') + 1);
}

std::vector<std::string> tensors_of(const ParameterSpec& weight) {
  std::vector<std::string> tensors;
  for (const StoredPiece& piece : weight.stored.pieces)
    if (std::find(tensors.begin(), tensors.end(), piece.tensor) == tensors.end())
      tensors.push_back(piece.tensor);
  return tensors;
}

ParameterSpec adapter(const ParameterSpec& weight, const std::string& name, int64_t rows, int64_t columns,
                      bool sharded) {
  return {.name = name,
          .layer = weight.layer,
          .rows = rows,
          .real_rows = rows,
          .columns = columns,
          .sharded = sharded,
          .decay = true,
          .adapter = true,
          .stored = {}};
}

// Names of adapters in files, as the PEFT library has them, without the prefix of its wrapper.
std::string stored_name(const std::string& tensor, const char* which) {
  return fmt::format("{}.{}.weight", without_weight(tensor), which);
}

// Of the rows of the weight that are stored in `tensor`; the weight's other rows are those of other modules.
StoredRows rows_of_b(const ParameterSpec& weight, const std::string& tensor) {
  StoredRows rows({}, weight.stored.groups);
  for (const StoredPiece& piece : weight.stored.pieces)
    if (piece.tensor == tensor)
      rows.pieces.push_back({stored_name(tensor, "lora_B"), piece.first, piece.rows});
  return rows;
}

LoraAdapter adapter_of(const ParameterSpec& weight, const std::string& tensor, const std::string& module,
                       int r) {
  const std::string name = fmt::format("{}.{}.", without_weight(weight.name), last_word(module));
  const int64_t inputs = weight.rows_are_inputs ? weight.rows : weight.columns;
  LoraAdapter made;
  if (weight.rows_are_inputs) {
    made.rows = weight.columns;
    made.a = adapter(weight, name + "lora_A", inputs, r, true);
    made.b = adapter(weight, name + "lora_B", weight.columns, r, false);
    made.a.stored = StoredRows({{stored_name(tensor, "lora_A"), 0, inputs}}, 1, /*transposed=*/true);
    made.b.stored = StoredRows({{stored_name(tensor, "lora_B"), 0, weight.columns}}, 1);
  } else {
    bool found = false;
    for (const StoredPiece& piece : weight.stored.pieces) {
      found = found || piece.tensor == tensor;
      if (!found) made.first += piece.rows;
      if (piece.tensor == tensor) made.rows += piece.rows;
    }
    made.a = adapter(weight, name + "lora_A", r, inputs, false);
    made.b = adapter(weight, name + "lora_B", weight.stored.groups * made.rows, r, true);
    made.a.stored = StoredRows({{stored_name(tensor, "lora_A"), 0, r}}, 1);
    made.b.stored = rows_of_b(weight, tensor);
  }
  // The variance of PEFT's default, which is uniform.
  made.a.deviation = 1 / std::sqrt(3.0 * static_cast<double>(inputs));
  return made;
}

}  // namespace

std::vector<LoraAdapter> adapters_of(const ParameterSpec& parameter, const ModelSpec& model,
                                     const LoraSpec& lora) {
  std::vector<LoraAdapter> adapters;
  if (!is_linear_weight(parameter, model)) return adapters;
  for (const std::string& tensor : tensors_of(parameter)) {
    const std::string module = module_of(parameter, tensor);
    if (lora.targets(module)) adapters.push_back(adapter_of(parameter, tensor, module, lora.r));
  }
  return adapters;
}

std::vector<ParameterSpec> adapter_parameters(const ModelSpec& model, const LoraSpec& lora, int layer) {
  std::vector<ParameterSpec> list;
  for (const ParameterSpec& parameter : layer_parameters(model, layer, model.vocabulary)) {
    for (LoraAdapter& adapter : adapters_of(parameter, model, lora)) {
      list.push_back(std::move(adapter.a));
      list.push_back(std::move(adapter.b));
    }
  }
  return list;
}

std::vector<ParameterSpec> trained_parameters(const ModelSpec& model, const std::optional<LoraSpec>& lora,
                                              int64_t padded_vocabulary) {
  std::vector<ParameterSpec> all = list_parameters(model, padded_vocabulary);
  if (!lora) return all;
  std::vector<ParameterSpec> list;
  for (const ParameterSpec& parameter : all) {
    for (LoraAdapter& adapter : adapters_of(parameter, model, *lora)) {
      list.push_back(std::move(adapter.a));
      list.push_back(std::move(adapter.b));
    }
  }
  return list;
}

std::vector<std::string> linear_modules(const ModelSpec& model) {
  std::vector<std::string> modules;
  for (const ParameterSpec& parameter : layer_parameters(model, 1, model.vocabulary)) {
    if (!is_linear_weight(parameter, model)) continue;
    for (const std::string& tensor : tensors_of(parameter)) modules.push_back(module_of(parameter, tensor));
  }
  return modules;
}

std::vector<std::string> last_words(const std::vector<std::string>& modules) {
  std::vector<std::string> words;
  for (const std::string& module : modules)
    if (const std::string word = last_word(module);
        std::find(words.begin(), words.end(), word) == words.end())
      words.push_back(word);
  return words;
}

}  // namespace sailor
