#include "planner/spec/model_family.h"

namespace sailor {
namespace {

constexpr FamilyTraits kFamilies[] = {
    {.name = "gpt2", .learned_positions = true, .biases = true, .qkv_biases = true},
    {.name = "opt", .learned_positions = true, .biases = true, .qkv_biases = true, .position_offset = 2},
    {.name = "gpt-neo", .learned_positions = true, .biases = true, .attention_window = 256},
    {.name = "llama", .gated_mlp = true, .rotary = true, .grouped_heads = true},
};

}  // namespace

const FamilyTraits* find_family(const std::string& name) {
  for (const FamilyTraits& family : kFamilies) {
    if (name == family.name) return &family;
  }
  return nullptr;
}

}  // namespace sailor
