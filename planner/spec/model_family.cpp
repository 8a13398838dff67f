#include "planner/spec/model_family.h"

namespace sailor {
namespace {

constexpr FamilyTraits kFamilies[] = {
    {.name = "gpt2",
     .gated_mlp = false,
     .learned_positions = true,
     .biases = true,
     .qkv_biases = true,
     .rotary = false,
     .grouped_heads = false,
     .position_offset = 0,
     .attention_window = 0},
    {.name = "opt",
     .gated_mlp = false,
     .learned_positions = true,
     .biases = true,
     .qkv_biases = true,
     .rotary = false,
     .grouped_heads = false,
     .position_offset = 2,
     .attention_window = 0},
    {.name = "gpt-neo",
     .gated_mlp = false,
     .learned_positions = true,
     .biases = true,
     .qkv_biases = false,
     .rotary = false,
     .grouped_heads = false,
     .position_offset = 0,
     .attention_window = 256},
    {.name = "llama",
     .gated_mlp = true,
     .learned_positions = false,
     .biases = false,
     .qkv_biases = false,
     .rotary = true,
     .grouped_heads = true,
     .position_offset = 0,
     .attention_window = 0},
};

}  // namespace

const FamilyTraits* find_family(const std::string& name) {
  for (const FamilyTraits& family : kFamilies) {
    if (name == family.name) return &family;
  }
  return nullptr;
}

}  // namespace sailor
