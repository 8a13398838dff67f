#include "trainer/data/tokenize/huggingface/pattern.h"

#include <fmt/format.h>
#include <unicode/regex.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "trainer/data/tokenize/huggingface/unicode.h"

namespace sailor {
namespace {

// Scans an expression for what Oniguruma and ICU understand differently.
class SyntaxCheck {
 public:
  SyntaxCheck(const std::string& expression, const Field& field) : text_(expression), field_(field) {
    for (at_ = 0; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '\\')
        escape();
      else if (c == '[')
        character_class();
      else if (c == '(')
        group();
      else if (c == '^' || c == '$')
        refuse(std::string(1, c));
      else if (rest().starts_with("{,") || (c == '}' && rest().starts_with("}+")))
        refuse(text_.substr(at_, 2));
      else
        ++at_;
    }
  }

 private:
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  [[noreturn]] void refuse(const std::string& what) const {
    field_.fail(fmt::format("`{}` in a regular expression is not supported", what));
  }
  void escape() {
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    const bool known =
        std::string_view("sSdDrnt").find(c) != std::string_view::npos ||
        (c > ' ' && c < 0x7f && std::isalnum(static_cast<unsigned char>(c)) == 0) ||
        ((c == 'p' || c == 'P') && rest().substr(2).starts_with('{') && !rest().substr(3).starts_with('^')) ||
        (c == 'u' &&
         std::all_of(rest().begin() + 2,
                     rest().begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(6, rest().size())),
                     [](unsigned char h) { return std::isxdigit(h) != 0; }));
    if (!known) refuse(text_.substr(at_, 2));
    const bool named = c == 'p' || c == 'P';
    at_ = named ? std::min(text_.find('}', at_), text_.size() - 1) + 1 : at_ + 2;
  }
  void character_class() {
    ++at_;
    if (rest().starts_with('^')) ++at_;
    if (rest().starts_with(']')) refuse("[]");
    while (!rest().starts_with(']')) {
      if (at_ >= text_.size()) field_.fail("a regular expression lacks a `]`");
      if (text_[at_] == '[' || rest().starts_with("&&") || rest().starts_with("--"))
        refuse(fmt::format("{}` within `[...]", text_[at_]));
      if (text_[at_] == '\\')
        escape();
      else
        ++at_;
    }
    ++at_;
  }
  void group() {
    ++at_;
    if (!rest().starts_with('?')) return;
    for (const char* known : {"?:", "?=", "?!", "?>", "?<=", "?<!", "?i:"}) {
      if (!rest().starts_with(known)) continue;
      at_ += std::string_view(known).size();
      return;
    }
    refuse("(" + text_.substr(at_, 2));
  }

  const std::string& text_;
  const Field& field_;
  std::size_t at_ = 0;
};

void require_regex(UErrorCode status) {
  if (U_FAILURE(status))
    throw std::runtime_error(fmt::format("ICU: regular expression: {}", u_errorName(status)));
}

// A compiled expression. Matchers have state: each is used by one thread at a time, and kept.
class Expression {
 public:
  Expression(const std::string& expression, const Field& field) {
    SyntaxCheck(expression, field);
    UParseError where{};
    UErrorCode status = U_ZERO_ERROR;
    pattern_.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(expression), UREGEX_UNIX_LINES,
                                              where, status));
    if (U_FAILURE(status))
      field.fail(fmt::format("the regular expression is not supported ({} at character {})",
                             u_errorName(status), where.offset));
  }

  void find(const std::u16string& text, std::size_t begin, std::size_t end,
            std::vector<Span>& matches) const {
    std::unique_ptr<icu::RegexMatcher> matcher = take();
    const icu::UnicodeString alias(false, text.data() + begin, static_cast<int32_t>(end - begin));
    matcher->reset(alias);
    UErrorCode status = U_ZERO_ERROR;
    std::size_t last_end = end + 1;  // of no match
    while (matcher->find(status)) {
      const Span match{begin + static_cast<std::size_t>(matcher->start(status)),
                       begin + static_cast<std::size_t>(matcher->end(status))};
      // Oniguruma's searches give no empty match right behind another one.
      if (match.begin == match.end && match.end == last_end) continue;
      matches.push_back(match);
      last_end = match.end;
    }
    require_regex(status);
    give_back(std::move(matcher));
  }

 private:
  std::unique_ptr<icu::RegexMatcher> take() const {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<icu::RegexMatcher> matcher = std::move(free_.back());
        free_.pop_back();
        return matcher;
      }
    }
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::RegexMatcher> matcher(pattern_->matcher(status));
    require_regex(status);
    matcher->setStackLimit(0, status);
    require_regex(status);
    return matcher;
  }
  void give_back(std::unique_ptr<icu::RegexMatcher> matcher) const {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(matcher));
  }

  std::unique_ptr<icu::RegexPattern> pattern_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<icu::RegexMatcher>> free_;
};

FindMatches literal(std::u16string wanted) {
  return [wanted = std::move(wanted)](const std::u16string& text, std::size_t begin, std::size_t end,
                                      std::vector<Span>& matches) {
    const std::u16string_view part = std::u16string_view(text).substr(0, end);
    for (std::size_t at = part.find(wanted, begin); at != std::u16string_view::npos;
         at = part.find(wanted, at + wanted.size()))
      matches.push_back({at, at + wanted.size()});
  };
}

}  // namespace

FindMatches regular_expression(const std::string& expression, const Field& field) {
  auto compiled = std::make_shared<Expression>(expression, field);
  return [compiled](const std::u16string& text, std::size_t begin, std::size_t end,
                    std::vector<Span>& matches) { compiled->find(text, begin, end, matches); };
}

FindMatches read_pattern(const Field& field) {
  const MapField map(field, {"String", "Regex"});
  const std::optional<Field> text = map.optional("String"), expression = map.optional("Regex");
  if (text.has_value() == expression.has_value()) map.fail("must have one of String and Regex");
  return text ? literal(to_utf16(text->text())) : regular_expression(expression->text(), *expression);
}

FindMatches characters(std::function<bool(char32_t)> matches) {
  return [matches = std::move(matches)](const std::u16string& text, std::size_t begin, std::size_t end,
                                        std::vector<Span>& found) {
    const std::u16string_view part = std::u16string_view(text).substr(0, end);
    for (std::size_t at = begin; at < end;) {
      const std::size_t first = at;
      if (matches(next_code_point(part, at))) found.push_back({first, at});
    }
  };
}

std::u16string replace_matches(const std::u16string& text, const FindMatches& find,
                               const std::u16string& replacement) {
  std::vector<Span> matches;
  find(text, 0, text.size(), matches);
  std::u16string result;
  result.reserve(text.size());
  std::size_t at = 0;
  for (const Span& match : matches) {
    result.append(text, at, match.begin - at).append(replacement);
    at = match.end;
  }
  return result.append(text, at);
}

}  // namespace sailor
