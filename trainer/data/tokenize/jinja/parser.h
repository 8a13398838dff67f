// From the text of a template to its syntax tree.
#pragma once

#include <string>
#include <string_view>

#include "trainer/data/tokenize/jinja/syntax.h"

namespace sailor::jinja {

struct Program {
  Statements statements;
  std::vector<std::string> unset;  // names not defined when they begin (symbols.h)
  bool has_generation = false;
};

// Throws InputError naming `file`, the line in the template, and what is wrong or not supported: tags,
// filters, tests, functions and methods that are not known, and all that nests deeper than kMostNodeLevels.
Program parse_template(std::string_view source, const std::string& file);

}  // namespace sailor::jinja
