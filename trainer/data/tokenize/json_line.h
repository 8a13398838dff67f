// A line of a JSONL file: an object with the text of one document, or a prompt and its completion. Pure.
#pragma once

#include <string>
#include <string_view>

#include "planner/spec/error.h"

namespace sailor {

// The text under `key`. Throws InputError at `where`: no JSON, no object, no such key, not a text.
std::string text_of_json_line(std::string_view line, const std::string& key, const Where& where);

struct Example {
  std::string prompt, completion;
};
// The texts under `prompt` and `completion`; the completion must not be empty. Throws as above.
Example example_of_json_line(std::string_view line, const Where& where);

}  // namespace sailor
