#include "trainer/data/tokenize/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/python_text.h"

namespace sailor::jinja {
namespace {

std::string description(const Token& token) {
  switch (token.kind) {
    case TokenKind::output_end:
      return "}}";
    case TokenKind::block_end:
      return "%}";
    case TokenKind::constant:
      return "a constant";
    case TokenKind::end:
      return "the end of the template";
    default:
      return token.text;
  }
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

void ExpressionParser::fail(const std::string& what, int line) const {
  throw InputError(Where{file_, line > 0 ? line : current().line}, what);
}

bool ExpressionParser::skip_name(std::string_view name) {
  const bool found = at_name(name);
  if (found) take();
  return found;
}

bool ExpressionParser::skip_symbol(std::string_view symbol) {
  const bool found = at_symbol(symbol);
  if (found) take();
  return found;
}

void ExpressionParser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail(fmt::format("expected {}, found {}", symbol, description(current())));
}

std::string ExpressionParser::expect_name() {
  if (current().kind != TokenKind::name)
    fail(fmt::format("expected a name, found {}", description(current())));
  return take().text;
}

void ExpressionParser::register_name(const std::string& name) {
  if (names_.insert(name).second && names_.size() > kMostNames)
    fail(fmt::format("the template has more than {} names", kMostNames));
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, std::vector<ExpressionPtr> parts) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = line;
  made->parts = std::move(parts);
  finish(*made);
  return made;
}

// Counts the levels of an expression that has all its parts.
void ExpressionParser::finish(Expression& expression) const {
  int below = 0;
  const auto count = [&](const ExpressionPtr& part) { below = std::max(below, part ? part->levels : 0); };
  for (const ExpressionPtr& part : expression.parts) count(part);
  for (const ExpressionPtr& part : expression.arguments) count(part);
  for (const auto& [name, part] : expression.named_arguments) count(part);
  expression.levels = below + 1;
  if (expression.levels > kMostNodeLevels)
    fail(fmt::format("an expression has more than {} levels", kMostNodeLevels), expression.line);
}

ExpressionPtr ExpressionParser::binary(std::string symbol, int line, ExpressionPtr a, ExpressionPtr b) {
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(a));
  parts.push_back(std::move(b));
  ExpressionPtr made = make(ExpressionKind::binary, line, std::move(parts));
  made->name = std::move(symbol);
  return made;
}

ExpressionPtr ExpressionParser::expression(bool with_condition) {
  if (++levels_ > kMostNodeLevels)
    fail(fmt::format("expressions nest more than {} levels deep", kMostNodeLevels));
  const int line = current().line;
  ExpressionPtr result = any_of();
  while (with_condition && skip_name("if")) {
    std::vector<ExpressionPtr> parts;
    parts.push_back(any_of());
    parts.push_back(std::move(result));
    parts.push_back(skip_name("else") ? expression() : nullptr);
    result = make(ExpressionKind::conditional, line, std::move(parts));
  }
  --levels_;
  return result;
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, std::string_view end) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (true) {
    const bool ends = current().kind == TokenKind::output_end || current().kind == TokenKind::block_end ||
                      at_symbol(")") || (!end.empty() && at_name(end));
    if (ends) break;
    parts.push_back(expression(with_condition));
    if (!skip_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && parts.empty())
    fail(fmt::format("expected an expression, found {}", description(current())));
  return is_tuple ? make(ExpressionKind::tuple, line, std::move(parts)) : std::move(parts[0]);
}

ExpressionPtr ExpressionParser::any_of() {
  const int line = current().line;
  ExpressionPtr left = all_of();
  while (skip_name("or")) left = binary("or", line, std::move(left), all_of());
  return left;
}

ExpressionPtr ExpressionParser::all_of() {
  const int line = current().line;
  ExpressionPtr left = negation();
  while (skip_name("and")) left = binary("and", line, std::move(left), negation());
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  const int line = current().line;
  int count = 0;
  while (skip_name("not")) ++count;
  ExpressionPtr result = comparison();
  for (; count > 0; --count) {
    std::vector<ExpressionPtr> parts;
    parts.push_back(std::move(result));
    result = make(ExpressionKind::unary, line, std::move(parts));
    result->name = "not";
  }
  return result;
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> names;
  parts.push_back(sum());
  while (true) {
    const bool symbol =
        current().kind == TokenKind::symbol && is_one_of(current().text, {"==", "!=", "<", "<=", ">", ">="});
    if (symbol || at_name("in")) {
      names.push_back(take().text);
    } else if (at_name("not") && peek().kind == TokenKind::name && peek().text == "in") {
      take();
      take();
      names.emplace_back("not in");
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (names.empty()) return std::move(parts[0]);
  ExpressionPtr made = make(ExpressionKind::compare, line, std::move(parts));
  made->names = std::move(names);
  return made;
}

ExpressionPtr ExpressionParser::sum() {
  const int line = current().line;
  ExpressionPtr left = concatenation();
  while (at_symbol("+") || at_symbol("-")) {
    std::string symbol = take().text;
    left = binary(std::move(symbol), line, std::move(left), concatenation());
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  do {
    parts.push_back(product());
  } while (skip_symbol("~"));
  return parts.size() == 1 ? std::move(parts[0]) : make(ExpressionKind::concatenate, line, std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  const int line = current().line;
  ExpressionPtr left = power();
  while (at_symbol("*") || at_symbol("/") || at_symbol("//") || at_symbol("%")) {
    std::string symbol = take().text;
    left = binary(std::move(symbol), line, std::move(left), power());
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  const int line = current().line;
  ExpressionPtr left = unary();
  while (skip_symbol("**")) left = binary("**", line, std::move(left), unary());
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const int line = current().line;
  ExpressionPtr result;
  if (at_symbol("-") || at_symbol("+")) {
    if (++levels_ > kMostNodeLevels) fail("too many signs");
    std::string sign = take().text;
    std::vector<ExpressionPtr> parts;
    parts.push_back(unary(false));
    result = make(ExpressionKind::unary, line, std::move(parts));
    result->name = std::move(sign);
    --levels_;
  } else {
    result = primary();
  }
  result = postfix(std::move(result));
  while (with_filters) {
    if (skip_symbol("|"))
      result = filter(std::move(result));
    else if (at_name("is"))
      result = test(std::move(result));
    else if (at_symbol("("))
      result = call(std::move(result));
    else
      break;
  }
  return result;
}

ExpressionPtr ExpressionParser::primary(bool attributes) {
  const int line = current().line;
  if (current().kind == TokenKind::name) return name(attributes);
  if (current().kind == TokenKind::constant) {
    ExpressionPtr made = make(ExpressionKind::constant, line);
    made->value = take().value;
    if (!made->value.is_text()) return made;
    std::string text = made->value.text();
    while (current().kind == TokenKind::constant && current().value.is_text()) text += take().value.text();
    made->value = std::move(text);
    return made;
  }
  if (at_symbol("[")) return list();
  if (at_symbol("{")) return dictionary();
  if (!skip_symbol("(")) fail(fmt::format("unexpected {}", description(current())));
  ExpressionPtr inner;
  if (at_symbol(")"))
    inner = make(ExpressionKind::tuple, line);
  else
    inner = tuple();
  expect_symbol(")");
  return inner;
}

ExpressionPtr ExpressionParser::name(bool attributes) {
  const Token token = take();
  const std::string& text = token.text;
  const auto constant = [&](Value value) {
    ExpressionPtr made = make(ExpressionKind::constant, token.line);
    made->value = std::move(value);
    return made;
  };
  if (text == "true" || text == "True" || text == "false" || text == "False")
    return constant(text == "true" || text == "True");
  if (text == "none" || text == "None") return constant({});
  if (text == "loop") {
    static constexpr std::string_view kKnown =
        " index index0 revindex revindex0 first last length previtem nextitem depth depth0 ";
    if (loops == 0 || !skip_symbol(".")) fail("loop is supported as loop.NAME in a for block", token.line);
    ExpressionPtr made = make(ExpressionKind::loop, token.line);
    made->name = expect_name();
    if (kKnown.find(" " + made->name + " ") == std::string_view::npos)
      fail(fmt::format("loop.{} is not supported", made->name), token.line);
    return made;
  }
  if (is_one_of(text, {"self", "super", "caller", "varargs", "kwargs", "lipsum", "cycler", "joiner"}))
    fail(fmt::format("{} is not supported", text), token.line);
  register_name(text);
  ExpressionPtr made = make(ExpressionKind::name, token.line);
  made->name = text;
  if (!attributes || !skip_symbol(".")) return made;
  return attribute(std::move(made));
}

ExpressionPtr ExpressionParser::list() {
  const int line = current().line;
  expect_symbol("[");
  std::vector<ExpressionPtr> parts;
  while (!at_symbol("]")) {
    parts.push_back(expression());
    if (!skip_symbol(",")) break;
  }
  expect_symbol("]");
  return make(ExpressionKind::list, line, std::move(parts));
}

ExpressionPtr ExpressionParser::dictionary() {
  const int line = current().line;
  expect_symbol("{");
  std::vector<ExpressionPtr> parts;
  while (!at_symbol("}")) {
    parts.push_back(expression());
    expect_symbol(":");
    parts.push_back(expression());
    if (!skip_symbol(",")) break;
  }
  expect_symbol("}");
  return make(ExpressionKind::dictionary, line, std::move(parts));
}

}  // namespace sailor::jinja
