// GLM-4 of April 2025 (GLM-4-0414): as GLM, with norms of what attention and MLP add.
#include "planner/spec/families/glm.h"

namespace sailor {
namespace {

TensorNames glm4_tensors(const ModelSpec& model) {
  TensorNames names = glm_tensors(model);
  names.norm1_after = "post_self_attn_layernorm";
  names.norm2_after = "post_mlp_layernorm";
  return names;
}

ModelSpec glm4_choices() {
  ModelSpec choices = glm_choices();
  choices.norm_place = NormPlace::both;
  return choices;
}

}  // namespace

ModelFamily glm4_family() {
  return {.name = "glm4",
          .choices = glm4_choices(),
          .keys = glm_keys(),
          .tensors = glm4_tensors,
          .config = glm_config("glm4", "Glm4ForCausalLM"),
          .stored_prefix = "model."};
}

}  // namespace sailor
