// Words in error messages: quoting what a person wrote, and guessing what was meant. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sailor {

// `text` in double quotes, on one line: control characters are escaped, and what is longer than 60 characters
// is cut.
std::string in_quotes(std::string_view text);

// `text` with line breaks and other control characters replaced by spaces.
std::string one_line(std::string_view text);

// The candidate nearest to `word` by edit distance (a swap of neighbours counts once, case half); where none
// is near enough to be a slip of the hand, one that `word` is the beginning of, else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// `, did you mean "X"?`, or empty when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// `A, B or C`; empty for no words.
std::string alternatives(const std::vector<std::string>& words);

// `40 s`, `35 min`, `2 h 10 min`, `3 days`, rounded up. Requires seconds >= 0.
std::string duration_text(double seconds);

}  // namespace sailor
