// Low-rank adapters (LoRA; Hu et al., 2021): `training.lora` of a job spec. The base model is frozen; every
// target module, a linear layer with weight W [outputs, inputs], gets a trained A [r, inputs] and B [outputs,
// r], and computes W x + (alpha / r) B A x. Plain value type.
#pragma once

#include <string>
#include <vector>

#include "planner/spec/model_spec.h"

namespace sailor {

class Field;

struct LoraSpec {
  int r = 8;         // rank
  double alpha = 8;  // the adapters' results are multiplied by alpha / r
  // Modules as model directories name them, in whole (`self_attn.q_proj`) or by their last words (`q_proj`).
  std::vector<std::string> target_modules;
  std::string base_digest{};  // of the base model's weights; set by the trainer

  double scale() const { return alpha / r; }
  bool targets(const std::string& module) const;

  bool operator==(const LoraSpec&) const = default;
};

// In place of a list of target modules: all linear layers of blocks.
inline constexpr const char* kAllLinear = "all-linear";

// Reads `training.lora` of a job for this model. Throws InputError.
LoraSpec read_lora(const Field& field, const ModelSpec& model);

}  // namespace sailor
