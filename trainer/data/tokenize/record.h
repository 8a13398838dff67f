// What a record of a data file says: the text of one document, or a prompt and its completion. A record is a
// JSON object, whatever the format of its file (record_file.h). Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "planner/spec/error.h"

namespace sailor {

// JSON of any kind. Throws InputError at `where`, with `hint` behind it: no JSON.
nlohmann::json parse_value(std::string_view text, const std::string& hint, const Where& where);

// A line of a JSONL file. `form` is what it should look like. Throws InputError at `where`: no JSON, no
// object.
nlohmann::json parse_record(std::string_view line, const std::string& form, const Where& where);

// The text under `key`. Throws InputError at `where`: no such key, not a text.
std::string text_of_record(const nlohmann::json& record, const std::string& key, const Where& where);
std::string text_form(const std::string& key);  // {"text": "a document"}

struct Example {
  std::string prompt, completion;
};
// The texts under `prompt` and `completion`; the completion must not be empty. Throws as above.
Example example_of_record(const nlohmann::json& record, const Where& where);
std::string example_form();

}  // namespace sailor
