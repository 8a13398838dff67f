// UTF-8 and UTF-16, and the classes of characters that tokenizers distinguish, by ICU. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sailor {

// Every maximal part that is no UTF-8 becomes one U+FFFD, as Python's decode(errors='replace') does.
std::u16string to_utf16(std::string_view utf8);
std::string to_utf8(std::u16string_view text);

// The code point that begins at `at`, which is moved behind it. Requires at < text.size().
char32_t next_code_point(std::u16string_view text, std::size_t& at);
void append_code_point(std::u16string& text, char32_t c);

// White_Space.
bool is_space(char32_t c);
// What regular expressions call `\w`: alphabetic, marks, decimal digits, connector punctuation, joiners.
bool is_word(char32_t c);
// General category N.
bool is_number(char32_t c);
// General category P in Unicode 8, which the tokenizers library has a table of.
bool is_punctuation(char32_t c);

}  // namespace sailor
