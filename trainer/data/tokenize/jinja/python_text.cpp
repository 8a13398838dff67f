#include "trainer/data/tokenize/jinja/python_text.h"

#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <limits>

namespace sailor::jinja {
namespace {

icu::UnicodeString unicode(std::string_view text) {
  return icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
}
std::string utf8(const icu::UnicodeString& text) {
  std::string result;
  return text.toUTF8String(result);
}

bool is_cased(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED);
}

// The first character in title case, the others in lower case.
std::string capitalize_run(std::string_view run) {
  if (run.empty()) return {};
  std::size_t first = 0;
  next_code_point(run, first);
  std::string result = utf8(unicode(run.substr(0, first)).toTitle(nullptr, icu::Locale::getRoot()));
  return result + lower(run).substr(lower(run.substr(0, first)).size());
}

std::size_t begin_of_last(std::string_view text) {
  std::size_t at = text.size() - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

bool is_printable(char32_t c) {
  constexpr uint32_t kHidden = U_GC_C_MASK | U_GC_ZL_MASK | U_GC_ZP_MASK | U_GC_ZS_MASK;  // Cn is a part of C
  return c == ' ' || (U_GET_GC_MASK(static_cast<UChar32>(c)) & kHidden) == 0;
}

// Whether all cased characters have the property, and there is one.
bool all_cased(std::string_view text, UProperty property) {
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_cased(c)) continue;
    if (!u_hasBinaryProperty(static_cast<UChar32>(c), property)) return false;
    any = true;
  }
  return any;
}

}  // namespace

bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  UChar32 c = 0;
  U8_NEXT_OR_FFFD(text.data(), at, text.size(), c);
  return static_cast<char32_t>(c);
}

void append_code_point(std::string& text, char32_t c) {
  char bytes[4];
  int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, static_cast<UChar32>(c));
  text.append(bytes, static_cast<std::size_t>(size));
}

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0, begin = 0; at < text.size(); begin = at) {
    next_code_point(text, at);
    all.push_back(text.substr(begin, at - begin));
  }
  return all;
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars) {
  const auto goes = [&](std::string_view character) {
    std::size_t at = 0;
    return chars ? chars->find(character) != std::string_view::npos
                 : is_python_space(next_code_point(character, at));
  };
  while (side != Side::right && !text.empty()) {
    std::size_t at = 0;
    next_code_point(text, at);
    if (!goes(text.substr(0, at))) break;
    text.remove_prefix(at);
  }
  while (side != Side::left && !text.empty()) {
    const std::size_t last = begin_of_last(text);
    if (!goes(text.substr(last))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string upper(std::string_view text) {
  return utf8(unicode(text).toUpper(icu::Locale::getRoot()));
}

std::string lower(std::string_view text) {
  return utf8(unicode(text).toLower(icu::Locale::getRoot()));
}

std::string capitalize(std::string_view text) {
  return capitalize_run(text);
}

std::string title(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    bool cased = is_cased(next_code_point(text, at));
    const bool run = cased;
    for (std::size_t next = at; run && next < text.size(); at = next) {
      cased = is_cased(next_code_point(text, next));
      if (!cased) break;
    }
    result += run ? capitalize_run(text.substr(begin, at - begin)) : text.substr(begin, at - begin);
  }
  return result;
}

std::string title_of_words(std::string_view text) {
  const auto begins_word = [](char32_t c) {
    return is_python_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const bool separator = begins_word(next_code_point(text, at));
    const std::size_t first = at;
    while (at < text.size()) {
      std::size_t next = at;
      if (begins_word(next_code_point(text, next)) != separator) break;
      at = next;
    }
    result += upper(text.substr(begin, first - begin)) + lower(text.substr(first, at - first));
  }
  return result;
}

bool is_upper(std::string_view text) {
  return all_cased(text, UCHAR_UPPERCASE);
}

bool is_lower(std::string_view text) {
  return all_cased(text, UCHAR_LOWERCASE);
}

std::vector<std::string_view> split(std::string_view text, std::optional<std::string_view> separator,
                                    int64_t most) {
  std::vector<std::string_view> parts;
  const auto full = [&] { return most >= 0 && static_cast<int64_t>(parts.size()) >= most; };
  if (separator) {
    std::size_t end = 0;
    while (!full() && (end = text.find(*separator)) != std::string_view::npos) {
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end + separator->size());
    }
    parts.push_back(text);
    return parts;
  }
  for (text = strip(text, Side::left); !text.empty(); text = strip(text, Side::left)) {
    if (full()) {
      parts.push_back(strip(text, Side::right));
      break;
    }
    std::size_t end = 0;
    for (std::size_t next = 0; next < text.size(); end = next) {
      if (is_python_space(next_code_point(text, next))) break;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator, int64_t most) {
  std::vector<std::string_view> parts;
  const auto full = [&] { return most >= 0 && static_cast<int64_t>(parts.size()) >= most; };
  if (separator) {
    std::size_t begin = 0;
    while (!full() && (begin = text.rfind(*separator)) != std::string_view::npos) {
      parts.push_back(text.substr(begin + separator->size()));
      text = text.substr(0, begin);
    }
    parts.push_back(text);
  } else {
    for (text = strip(text, Side::right); !text.empty(); text = strip(text, Side::right)) {
      if (full()) {
        parts.push_back(strip(text, Side::left));
        break;
      }
      std::size_t begin = text.size();
      while (begin > 0) {
        std::size_t at = begin_of_last(text.substr(0, begin));
        const std::size_t previous = at;
        if (is_python_space(next_code_point(text, at))) break;
        begin = previous;
      }
      parts.push_back(text.substr(begin));
      text = text.substr(0, begin);
    }
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t c = next_code_point(text, at);
    const bool ends =
        (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && text.substr(at).starts_with('\n')) ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string replace(std::string_view text, std::string_view old, std::string_view with, int64_t most) {
  std::string result;
  auto left = most < 0 ? std::numeric_limits<int64_t>::max() : most;
  if (old.empty()) {  // before every character, and at the end
    for (const std::string_view character : characters(text)) {
      if (left-- > 0) result += with;
      result += character;
    }
    if (left > 0) result += with;
    return result;
  }
  std::size_t at = 0;
  for (std::size_t found = 0; left > 0 && (found = text.find(old, at)) != std::string_view::npos; --left) {
    result.append(text, at, found - at).append(with);
    at = found + old.size();
  }
  return result.append(text.substr(at));
}

std::size_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return count_code_points(text) + 1;
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
  return count;
}

std::string quote(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char mark = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string result(1, mark);
  for (std::size_t at = 0, begin = 0; at < text.size(); begin = at) {
    const char32_t c = next_code_point(text, at);
    if (c == static_cast<char32_t>(mark) || c == '\\')
      result += fmt::format("\\{}", static_cast<char>(c));
    else if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\t')
      result += "\\t";
    else if (is_printable(c))
      result += text.substr(begin, at - begin);
    else
      result += c <= 0xff     ? fmt::format("\\x{:02x}", static_cast<uint32_t>(c))
                : c <= 0xffff ? fmt::format("\\u{:04x}", static_cast<uint32_t>(c))
                              : fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
  return result + mark;
}

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&#34;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace sailor::jinja
