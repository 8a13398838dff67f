// The `post_processor` of tokenizer.json: tokens before and after those of a text. Thread-safe.
#pragma once

#include <vector>

#include "planner/spec/field.h"

namespace sailor {

struct PostProcessor {
  std::vector<int> before, after;
};

// Throws InputError naming file, line and key; what is unknown or not supported is an error.
PostProcessor read_post_processor(const Field& field);

}  // namespace sailor
