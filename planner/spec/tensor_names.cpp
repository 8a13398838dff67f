#include "planner/spec/tensor_names.h"

namespace sailor {

TensorNames llama_names() {
  return {.tokens = "model.embed_tokens",
          .positions = "",
          .final_norm = "model.norm",
          .block = "model.layers.",
          .norm1 = "input_layernorm",
          .norm1_after = "",
          .norm2 = "post_attention_layernorm",
          .norm2_after = "",
          .query_norm = "self_attn.q_norm",
          .key_norm = "self_attn.k_norm",
          .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
          .proj = "self_attn.o_proj",
          .up = {"mlp.gate_proj", "mlp.up_proj"},
          .down = "mlp.down_proj"};
}

}  // namespace sailor
