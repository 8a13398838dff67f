// A `pattern` of tokenizer.json, {"String": TEXT} or {"Regex": EXPRESSION}, and how text is split at its
// matches.
//
// Expressions are those of Oniguruma, which the tokenizers library uses, evaluated by ICU; constructs that
// the two understand differently are refused. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/field.h"

namespace sailor {

struct Span {
  std::size_t begin, end;
};

// Appends the matches in text [begin, end), which do not overlap. Nothing outside is looked at.
using FindMatches =
    std::function<void(const std::u16string& text, std::size_t begin, std::size_t end, std::vector<Span>&)>;

// Reads the key's value. Throws InputError naming file, line and key.
FindMatches read_pattern(const Field& field);
// A regular expression in UTF-8; `field` is for errors.
FindMatches regular_expression(const std::string& expression, const Field& field);
// Every character of which the predicate is true is a match.
FindMatches characters(std::function<bool(char32_t)> matches);

// Text with every match replaced.
std::u16string replace_matches(const std::u16string& text, const FindMatches& find,
                               const std::u16string& replacement);

}  // namespace sailor
