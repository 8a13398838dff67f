// What Llama and the families after it have in common.
#pragma once

#include "planner/spec/model_family.h"

namespace sailor {

// RMS norms, rotary positions, gated MLP (SwiGLU), no biases.
ModelSpec llama_choices();

// The keys of scaled rotary embeddings with `others`.
std::vector<std::string> with_rotary_keys(std::vector<std::string> others);

}  // namespace sailor
