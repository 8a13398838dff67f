// A line of a JSONL file: an object with the text of one document. Pure.
#pragma once

#include <string>
#include <string_view>

#include "planner/spec/error.h"

namespace sailor {

// The text under `key`. Throws InputError at `where`: no JSON, no object, no such key, not a text.
std::string text_of_json_line(std::string_view line, const std::string& key, const Where& where);

}  // namespace sailor
