#include "trainer/data/tokenize/jinja/string_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "trainer/data/tokenize/jinja/error.h"
#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

// Appends the character with the number that `digits` begins with; returns how many digits that are.
std::size_t append_number(std::string_view digits, std::size_t least, std::size_t most, int base,
                          std::string& text) {
  uint32_t value = 0;
  const std::string_view all = digits.substr(0, most);
  const auto result = std::from_chars(all.data(), all.data() + all.size(), value, base);
  const auto used = static_cast<std::size_t>(result.ptr - all.data());
  if (used < least) throw TemplateError("a text has an incomplete escape sequence");
  if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
    throw TemplateError("an escape sequence in a text names no character");
  append_code_point(text, value);
  return used;
}

}  // namespace

std::string decode_string_literal(std::string_view literal) {
  static constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
  std::string text;
  for (std::size_t at = 0; at < literal.size();) {
    if (literal[at] != '\\' || at + 1 == literal.size()) {
      text += literal[at++];
      continue;
    }
    const char c = literal[at + 1];
    const std::string_view after = literal.substr(at + 2);
    at += 2;
    if (const std::size_t letter = kLetters.find(c); letter != std::string_view::npos)
      text += kMeanings[letter];
    else if (c == 'x' || c == 'u' || c == 'U')
      at += append_number(after, c == 'x' ? 2 : c == 'u' ? 4 : 8, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16, text);
    else if (c >= '0' && c <= '7')
      at += append_number(literal.substr(at - 1), 1, 3, 8, text) - 1;
    else if (c == 'N' || static_cast<unsigned char>(c) >= 0x80)
      throw TemplateError(fmt::format("escape sequence \\{} is not supported",
                                      c == 'N' ? "N" : characters(literal.substr(at - 1, 4))[0]));
    else if (c != '\n')
      text.append(1, '\\').append(1, c);
  }
  return text;
}

}  // namespace sailor::jinja
