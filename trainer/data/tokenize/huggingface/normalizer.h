// The `normalizer` of tokenizer.json: changes of the text, in order. Thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "planner/spec/field.h"
#include "trainer/data/tokenize/huggingface/segment.h"

namespace sailor {

// Changes `text`, which is one piece, and `at_start`.
using Normalizer = std::vector<std::function<void(Segment&)>>;

// Throws InputError naming file, line and key; what is unknown or not supported is an error.
Normalizer read_normalizer(const Field& field);

inline void normalize(const Normalizer& normalizer, Segment& segment) {
  for (const auto& step : normalizer) step(segment);
}

}  // namespace sailor
