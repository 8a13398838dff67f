// The `decoder` of tokenizer.json: from the texts of tokens to the text that they stand for. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/spec/field.h"

namespace sailor {

// Steps over the tokens of a text, in UTF-8; the result is their concatenation.
using Decoder = std::vector<std::function<void(std::vector<std::string>&)>>;

// Throws InputError naming file, line and key; what is unknown or not supported is an error.
Decoder read_decoder(const Field& field);

}  // namespace sailor
