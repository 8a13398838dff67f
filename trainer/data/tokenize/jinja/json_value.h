// Values of templates from JSON text, and to it as Python's json module writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/data/tokenize/jinja/value.h"

namespace sailor::jinja {

// Throws TemplateError: not valid JSON, nested deeper than kMostValueLevels, an integer of more than 64 bits.
Value parse_json_value(std::string_view json);

// The arguments of json.dumps().
struct JsonForm {
  bool ascii_only = false;
  std::optional<std::string> indent;  // text per level; without it all is on one line
  std::string between_items = ", ", after_key = ": ";
  bool sort_keys = false;
};
// Throws TemplateError for what JSON does not have.
std::string to_json(const Value& value, const JsonForm& form, Budget& budget);

}  // namespace sailor::jinja
