// The adapters of a model with LoRA, as parameters. There is one A and one B for every target module of the
// model's directories: a weight that the trainer keeps in one piece, such as queries, keys and values, has
// several adapters where the directories have several modules.
//
// Adapters of weight `3.qkv.weight` for module `q_proj` are `3.qkv.q_proj.lora_A` and `3.qkv.q_proj.lora_B`.
// As the weights, they are sharded into blocks of rows: of a weight that is sharded by outputs, B [outputs,
// r] is sharded and A [r, inputs] is not; of one that is sharded by inputs, A is stored transposed, [inputs,
// r], and sharded, and B is not. A starts from random values, B from zero. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/lora_spec.h"
#include "planner/spec/model_parameter.h"

namespace sailor {

// Of one module. B computes rows [first, first + rows) of each of the weight's `groups` groups of rows; all
// of them if the weight is sharded by inputs.
struct LoraAdapter {
  ParameterSpec a, b;
  int64_t first = 0, rows = 0;
};

// The adapters of a parameter of the model; none for what is not a target module's weight.
std::vector<LoraAdapter> adapters_of(const ParameterSpec& parameter, const ModelSpec& model,
                                     const LoraSpec& lora);
// All of a layer, in the order of its weights, each A before its B.
std::vector<ParameterSpec> adapter_parameters(const ModelSpec& model, const LoraSpec& lora, int layer);

// What a job trains, in layer order: all parameters of the model, or the adapters. Rows of vocabulary
// matrices beyond the vocabulary are padding.
std::vector<ParameterSpec> trained_parameters(const ModelSpec& model, const std::optional<LoraSpec>& lora,
                                              int64_t padded_vocabulary);

// The linear layers of the model's blocks by their names in model directories, within a block.
std::vector<std::string> linear_modules(const ModelSpec& model);
// `q_proj` of `self_attn.q_proj`; each once.
std::vector<std::string> last_words(const std::vector<std::string>& modules);

}  // namespace sailor
