// What a model is made of: its parameters and FLOPs, in all and by layer. Pure.
#pragma once

#include <optional>
#include <string>

#include "planner/spec/lora_spec.h"
#include "planner/spec/model_spec.h"

namespace sailor {

// A map with `name`, `family`, `sequence`, `parameters`, `active_parameters`, `flops_per_token` (of one
// forward and backward, as training_flops_per_token() counts) and `layers`: equal layers that follow one
// another, each with its own parameters and FLOPs. With `lora` the parameters are those of the base model and
// of the adapters, and there is `trained_parameters`. Throws InputError for an unknown family.
std::string model_json(const ModelSpec& model, const std::optional<LoraSpec>& lora);
// The same as a table; ends in a newline.
std::string model_table(const ModelSpec& model, const std::optional<LoraSpec>& lora);

}  // namespace sailor
