// What the three generations of Gemma have in common.
#pragma once

#include "planner/spec/families/llama_like.h"

namespace sailor {

// As Llama, but zero-centred norms, a gate of GELU, and embeddings that are multiplied by the root of hidden.
ModelSpec gemma_choices();
// The same with norms after attention and MLP, too.
ModelSpec gemma2_choices();
TensorNames gemma2_names();

}  // namespace sailor
