// Text of error messages: quotes input, and suggests corrections. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sailor {

// `text` in double quotes, on one line: control characters are escaped, and text beyond 60 characters is cut.
std::string in_quotes(std::string_view text);

// `text` with line breaks and other control characters replaced by spaces.
std::string one_line(std::string_view text);

// The candidate nearest to `word` by edit distance (a swap of neighbours counts once, case half); if none is
// near enough to be a typo, one that starts with `word`, else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// `, did you mean "X"?`, or empty if no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// `A, B or C`; empty for no words.
std::string alternatives(const std::vector<std::string>& words);

// `40 s`, `35 min`, `2 h 10 min`, `3 days`, rounded up. Requires seconds >= 0.
std::string duration_text(double seconds);

}  // namespace sailor
