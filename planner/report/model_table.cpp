#include "planner/report/model_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "planner/spec/training_flops.h"

namespace sailor {
namespace {

// Layers [first, end) that are equal.
struct EqualLayers {
  int first = 0, end = 0;
  std::string kind;
  int64_t parameters = 0;  // of each; a tied matrix counts for the embedding
  int64_t trained = 0;     // of these
  double flops = 0;        // of each

  bool is_like(const EqualLayers& other) const {
    return kind == other.kind && parameters == other.parameters && trained == other.trained &&
           flops == other.flops;
  }
};

std::string kind_of(const ModelSpec& model, int layer) {
  if (layer == 0) return "embedding";
  if (layer > model.layers) return "head";
  return model.attends_locally(layer) ? "local block" : "block";
}

std::vector<EqualLayers> equal_layers(const ModelSpec& model, const std::optional<LoraSpec>& lora) {
  const TransformerShape shape = shape_of(model);
  std::vector<EqualLayers> all;
  for (int layer = 0; layer < model.num_all_layers(); ++layer) {
    EqualLayers one{layer, layer + 1, kind_of(model, layer)};
    for (const ParameterSpec& parameter : layer_parameters(model, layer, model.vocabulary))
      if (!parameter.tied_copy) one.parameters += parameter.elements();
    if (lora) {
      for (const ParameterSpec& adapter : adapter_parameters(model, *lora, layer))
        one.trained += adapter.elements();
      one.parameters += one.trained;
    } else {
      one.trained = one.parameters;
    }
    one.flops = layer_flops_per_token(shape, model, lora, layer);
    if (!all.empty() && all.back().is_like(one)) {
      all.back().end = one.end;
    } else {
      all.push_back(one);
    }
  }
  return all;
}

int64_t sum_of(const std::vector<EqualLayers>& layers, int64_t EqualLayers::*number) {
  int64_t sum = 0;
  for (const EqualLayers& some : layers) sum += (some.end - some.first) * some.*number;
  return sum;
}
int64_t parameters_of(const std::vector<EqualLayers>& layers) {
  return sum_of(layers, &EqualLayers::parameters);
}

// 8030261248 -> 8,030,261,248
std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace

std::string model_json(const ModelSpec& model, const std::optional<LoraSpec>& lora) {
  using Json = nlohmann::ordered_json;
  const std::vector<EqualLayers> layers = equal_layers(model, lora);
  Json json = {{"name", model.name},
               {"family", model.family},
               {"sequence", model.sequence},
               {"parameters", parameters_of(layers)},
               {"active_parameters", parameters_of(layers)},  // every token uses all of a dense model
               {"flops_per_token", training_flops_per_token(model, lora)},
               {"layers", Json::array()}};
  if (lora) json["trained_parameters"] = sum_of(layers, &EqualLayers::trained);
  for (const EqualLayers& some : layers)
    json["layers"].push_back({{"layers", {some.first, some.end}},
                              {"kind", some.kind},
                              {"parameters", some.parameters},
                              {"flops_per_token", some.flops}});
  return json.dump(2) + "\n";
}

std::string model_table(const ModelSpec& model, const std::optional<LoraSpec>& lora) {
  const std::vector<EqualLayers> layers = equal_layers(model, lora);
  std::string text = fmt::format(
      "{} ({}): {} parameters{}, {:.4g} FLOPs per token of a forward and backward with sequences of {}\n\n",
      model.name, model.family, with_commas(parameters_of(layers)),
      lora ? fmt::format(", of which {} are trained (LoRA r {})",
                         with_commas(sum_of(layers, &EqualLayers::trained)), lora->r)
           : "",
      training_flops_per_token(model, lora), model.sequence);
  text +=
      fmt::format("{:<9} {:<11} {:>18} {:>18}\n", "LAYERS", "KIND", "PARAMETERS each", "FLOPs/token each");
  for (const EqualLayers& some : layers) {
    const std::string range = some.end - some.first == 1 ? std::to_string(some.first)
                                                         : fmt::format("{}-{}", some.first, some.end - 1);
    text += fmt::format("{:<9} {:<11} {:>18} {:>18.4g}\n", range, some.kind, with_commas(some.parameters),
                        some.flops);
  }
  return text;
}

}  // namespace sailor
