// The `pre_tokenizer` of tokenizer.json: splits text into pieces that no token spans. Thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "planner/spec/field.h"
#include "trainer/data/tokenize/huggingface/segment.h"

namespace sailor {

// Each step splits the pieces further, and may change the text.
using PreTokenizer = std::vector<std::function<void(Segment&)>>;

// Throws InputError naming file, line and key; what is unknown or not supported is an error.
PreTokenizer read_pre_tokenizer(const Field& field);

}  // namespace sailor
