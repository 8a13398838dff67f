// Texts as Python's str treats them: indices count code points, white space and letter case are those of
// Unicode. Pure functions on valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sailor::jinja {

bool is_python_space(char32_t c);
// The code point that begins at `at`, which is moved behind it. Requires at < text.size().
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_code_point(std::string& text, char32_t c);

std::size_t count_code_points(std::string_view text);
// Every character as a text.
std::vector<std::string_view> characters(std::string_view text);

enum class Side { left, right, both };
// Without any of `chars` at the ends; without it, white space.
std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars = {});

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);           // str.title()
std::string title_of_words(std::string_view text);  // the filter `title`
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);

// At most `most` splits; negative = all. Without a separator, at white space. Requires a separator that is
// not empty.
std::vector<std::string_view> split(std::string_view text, std::optional<std::string_view> separator,
                                    int64_t most);
std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator, int64_t most);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// At most `most` of them; negative = all.
std::string replace(std::string_view text, std::string_view old, std::string_view with, int64_t most);
std::size_t count_of(std::string_view text, std::string_view part);

// repr()
std::string quote(std::string_view text);
// `&`, `<`, `>` and quotes as HTML entities.
std::string escape_html(std::string_view text);

}  // namespace sailor::jinja
