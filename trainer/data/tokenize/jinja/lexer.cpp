#include "trainer/data/tokenize/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/jinja/python_text.h"
#include "trainer/data/tokenize/jinja/string_literal.h"

namespace sailor::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Line ends become \n, and one at the end goes.
std::string normalized(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    text += source[i] == '\r' ? '\n' : source[i];
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string source, const std::string& file) : source_(std::move(source)), file_(file) {}

  std::vector<Token> read() {
    while (at_ < source_.size()) read_data();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(Where{file_, line_}, what); }
  std::string_view rest(std::size_t from) const { return std::string_view(source_).substr(from); }
  void add(TokenKind kind, std::string_view text, Value value = {}) {
    tokens_.push_back({kind, line_, std::string(text), std::move(value)});
  }
  void advance(std::size_t bytes) {
    const std::string_view passed = rest(at_).substr(0, bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (!passed.empty()) line_starting_ = passed.back() == '\n';
    at_ += bytes;
  }
  // The bytes of white space from a place on.
  std::size_t space_at(std::size_t from) const {
    return rest(from).size() - strip(rest(from), Side::left).size();
  }

  void read_data();
  void add_data(std::size_t end, char sign, bool before_output);
  void read_comment();
  // The bytes of a tag that is this word alone, from a place on; 0 if there is none.
  std::size_t raw_tag_at(std::size_t from, std::string_view word) const;
  void read_raw();
  // The bytes of the end of a tag from a place on, with the space that it takes; 0 if there is none.
  std::size_t tag_end_at(std::size_t from, std::string_view mark) const;
  void read_tag(bool output);
  void read_token();
  void read_number();
  void read_symbol();

  std::string source_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what was read last ends with a line end, or there is nothing before
  std::string open_;           // brackets, by what closes them
  std::vector<Token> tokens_;
};

void Lexer::add_data(std::size_t end, char sign, bool before_output) {
  std::string_view text = rest(at_).substr(0, end - at_);
  if (sign == '-') {
    text = strip(text, Side::right);
  } else if (sign != '+' && !before_output) {
    const std::size_t line = text.rfind('\n') + 1;  // 0 without one
    if ((line > 0 || line_starting_) && strip(text.substr(line), Side::left).empty())
      text = text.substr(0, line);
  }
  if (!text.empty()) add(TokenKind::data, text);
  advance(end - at_);
}

void Lexer::read_data() {
  std::size_t begin = at_;
  while (
      (begin = source_.find('{', begin)) != std::string::npos &&
      (begin + 1 == source_.size() || std::string_view("{%#").find(source_[begin + 1]) == std::string::npos))
    ++begin;
  if (begin == std::string::npos) {
    add(TokenKind::data, rest(at_));
    at_ = source_.size();
    return;
  }
  const char kind = source_[begin + 1], next = begin + 2 < source_.size() ? source_[begin + 2] : '\0';
  const bool has_sign = next == '-' || next == '+';
  add_data(begin, has_sign ? next : '\0', kind == '{');
  if (kind == '%' && raw_tag_at(begin, "raw") > 0) return read_raw();
  const std::size_t tag_bytes = has_sign ? 3 : 2;
  if (kind != '#') add(kind == '{' ? TokenKind::output_begin : TokenKind::block_begin, "");
  advance(tag_bytes);
  if (kind == '#') return read_comment();
  read_tag(kind == '{');
}

std::size_t Lexer::tag_end_at(std::size_t from, std::string_view mark) const {
  const bool output = mark == "}}";
  const std::string_view text = rest(from);
  if (text.starts_with(mark)) return 2 + (!output && text.substr(2).starts_with('\n') ? 1 : 0);
  if (!text.substr(std::min<std::size_t>(1, text.size())).starts_with(mark)) return 0;
  if (text[0] == '-') return 3 + space_at(from + 3);
  return text[0] == '+' && !output ? 3 : 0;
}

void Lexer::read_comment() {
  for (std::size_t end = at_; end < source_.size(); ++end) {
    const std::size_t bytes = tag_end_at(end, "#}");
    if (bytes > 0) return advance(end - at_ + bytes);
  }
  fail("a comment is not closed by #}");
}

std::size_t Lexer::raw_tag_at(std::size_t from, std::string_view word) const {
  std::size_t at = from;
  if (!rest(at).starts_with("{%")) return 0;
  at += 2;
  if (rest(at).starts_with('-') || rest(at).starts_with('+')) ++at;
  at += space_at(at);
  if (!rest(at).starts_with(word)) return 0;
  at += word.size();
  at += space_at(at);
  std::size_t bytes = tag_end_at(at, "%}");
  if (word == "raw" && rest(at).starts_with('+')) return 0;
  if (word == "raw" && rest(at).starts_with('%'))
    bytes = std::min<std::size_t>(bytes, 2);  // keeps the line end
  return bytes > 0 ? at + bytes - from : 0;
}

void Lexer::read_raw() {
  advance(raw_tag_at(at_, "raw"));
  for (std::size_t end = at_; (end = source_.find("{%", end)) != std::string::npos; ++end) {
    if (const std::size_t bytes = raw_tag_at(end, "endraw")) {
      const char sign = source_[end + 2];
      add_data(end, sign == '-' || sign == '+' ? sign : '\0', false);
      return advance(bytes);
    }
  }
  fail("a raw block is not closed by endraw");
}

void Lexer::read_tag(bool output) {
  open_.clear();
  while (true) {
    const std::size_t end = open_.empty() ? tag_end_at(at_, output ? "}}" : "%}") : 0;
    if (end > 0) {
      add(output ? TokenKind::output_end : TokenKind::block_end, "");
      return advance(end);
    }
    if (at_ == source_.size()) fail(output ? "{{ is not closed by }}" : "{% is not closed by %}");
    if (const std::size_t space = space_at(at_))
      advance(space);
    else
      read_token();
  }
}

void Lexer::read_token() {
  const char c = source_[at_];
  if (is_digit(c)) return read_number();
  if (begins_name(c)) {
    std::size_t end = at_;
    while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end]))) ++end;
    add(TokenKind::name, rest(at_).substr(0, end - at_));
    return advance(end - at_);
  }
  if (c != '\'' && c != '"') return read_symbol();
  std::size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != c) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fail("a text is not closed by its quotation mark");
  const std::string_view literal = rest(at_).substr(1, end - at_ - 1);
  try {
    add(TokenKind::constant, "", decode_string_literal(literal));
  } catch (const TemplateError& error) {
    fail(error.what());
  }
  advance(end + 1 - at_);
}

void Lexer::read_number() {
  std::size_t end = at_;
  const auto digits = [&] {
    while (end < source_.size() && is_digit(source_[end])) ++end;
  };
  const auto digit_at = [&](std::size_t at) { return at < source_.size() && is_digit(source_[at]); };
  digits();
  bool integer = true;
  if (at_ == 0 || source_[at_ - 1] != '.') {
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      integer = false;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const bool sign = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
      if (digit_at(end + (sign ? 2 : 1))) {
        integer = false;
        end += sign ? 2 : 1;
        digits();
      }
    }
  }
  const std::string text = source_.substr(at_, end - at_);
  int64_t whole = 0;
  double real = 0;
  const char* last = text.data() + text.size();
  const bool fits = integer ? std::from_chars(text.data(), last, whole).ec == std::errc()
                            : std::from_chars(text.data(), last, real).ec == std::errc();
  if (!fits || (integer && text.size() > 1 && text[0] == '0') ||
      (end < source_.size() && begins_name(source_[end])))
    fail(fmt::format("number {} is not supported: decimal ones of at most 64 bits are",
                     rest(at_).substr(0, std::min<std::size_t>(text.size() + 1, 40))));
  add(TokenKind::constant, "", integer ? Value(whole) : Value(real));
  advance(text.size());
}

void Lexer::read_symbol() {
  static constexpr std::string_view kSymbols[] = {"==", "!=", "<=", ">=", "**", "//", "+", "-", "*",
                                                  "/",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                  "<",  ">",  "=",  ".",  ":",  "|",  ","};
  const auto* const found =
      std::find_if(std::begin(kSymbols), std::end(kSymbols),
                   [&](std::string_view symbol) { return rest(at_).starts_with(symbol); });
  if (found == std::end(kSymbols))
    fail(fmt::format("unexpected character {}", quote(characters(rest(at_).substr(0, 4))[0])));
  const char c = source_[at_];
  if (c == '(' || c == '[' || c == '{') open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
  if (c == ')' || c == ']' || c == '}') {
    if (open_.empty() || open_.back() != c) fail(fmt::format("unexpected {}", c));
    open_.pop_back();
  }
  add(TokenKind::symbol, *found);
  advance(found->size());
}

}  // namespace

std::vector<Token> read_tokens(std::string_view source, const std::string& file) {
  return Lexer(normalized(source), file).read();
}

}  // namespace sailor::jinja
