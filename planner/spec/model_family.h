// What the planner has to know about a model family: how it differs from the first transformers as far as
// time, memory and the keys of a job spec depend on it. A family that is not in the table can be trained and,
// once it is measured, planned; only estimates and model directories need it to be here.
#pragma once

#include <string>

namespace sailor {

struct FamilyTraits {
  const char* name;
  bool gated_mlp = false;
  bool learned_positions = false;
  bool biases = false;      // linear layers have biases, norms have a shift
  bool qkv_biases = false;  // the projections to queries, keys and values too
  bool rotary = false;
  bool grouped_heads = false;  // fewer key and value heads than query heads
  int position_offset = 0;     // rows of the position embedding before that of the first token
  int attention_window = 0;    // of every second block, unless the job says otherwise; 0 = none has one
};

// nullptr when the family is not known. The table lives for ever.
const FamilyTraits* find_family(const std::string& name);

}  // namespace sailor
