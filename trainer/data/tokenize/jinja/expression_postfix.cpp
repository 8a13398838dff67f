// What follows an expression: attributes, items, calls, filters and tests.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/expression_parser.h"

namespace sailor::jinja {
namespace {

bool accepts_name(const Builtin& builtin, const std::string& name) {
  return std::find(builtin.parameters.begin(), builtin.parameters.end(), name) != builtin.parameters.end();
}

bool has_function_of(const std::string& filter) {  // of the filters that apply others
  return filter == "map" || filter == "select" || filter == "reject" || filter == "selectattr" ||
         filter == "rejectattr";
}

}  // namespace

ExpressionPtr ExpressionParser::postfix(ExpressionPtr subject) {
  while (true) {
    if (skip_symbol("."))
      subject = attribute(std::move(subject));
    else if (at_symbol("["))
      subject = subscript(std::move(subject));
    else if (at_symbol("("))
      subject = call(std::move(subject));
    else
      return subject;
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr subject) {
  const Token token = take();
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(subject));
  if (token.kind == TokenKind::constant && token.value.is<int64_t>()) {
    parts.push_back(make(ExpressionKind::constant, token.line));
    parts.back()->value = token.value;
    return make(ExpressionKind::item, token.line, std::move(parts));
  }
  if (token.kind != TokenKind::name) fail("expected a name or a number behind the dot", token.line);
  if (token.text.starts_with("_")) fail(fmt::format("attribute {} is not supported", token.text), token.line);
  ExpressionPtr made = make(ExpressionKind::attribute, token.line, std::move(parts));
  made->name = token.text;
  return made;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr subject) {
  const int line = current().line;
  expect_symbol("[");
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(subject));
  bool slice = false;
  while (!at_symbol("]")) {
    if (skip_symbol(":")) {
      slice = true;
      if (parts.size() < 2) parts.push_back(nullptr);
      const bool given = !at_symbol(":") && !at_symbol("]");
      parts.push_back(given ? expression() : nullptr);
      if (parts.size() > 4) fail("a slice has more than three parts");
    } else if (parts.size() == 1) {
      parts.push_back(expression());
    } else {
      fail(at_symbol(",") ? "several indices are not supported" : "expected ]");
    }
  }
  expect_symbol("]");
  if (parts.size() == 1) fail("[] without an index is not supported", line);
  if (slice) parts.resize(4);
  return make(slice ? ExpressionKind::slice : ExpressionKind::item, line, std::move(parts));
}

void ExpressionParser::arguments(Expression& call) {
  expect_symbol("(");
  while (!at_symbol(")")) {
    if (at_symbol("*") || at_symbol("**")) fail("arguments with * are not supported");
    if (current().kind == TokenKind::name && peek().kind == TokenKind::symbol && peek().text == "=") {
      std::string name = take().text;
      take();
      call.named_arguments.emplace_back(std::move(name), expression());
    } else {
      if (!call.named_arguments.empty()) fail("a positional argument follows a named one");
      call.arguments.push_back(expression());
    }
    if (!skip_symbol(",")) break;
  }
  expect_symbol(")");
  finish(call);
}

// Requires what is known before anything is rendered.
void ExpressionParser::check_arguments(const Expression& call, std::string_view what) const {
  const Builtin& builtin = *call.builtin;
  for (const auto& [name, value] : call.named_arguments) {
    if (!builtin.takes_rest && !accepts_name(builtin, name))
      fail(fmt::format("{} {} has no argument {}", what, call.name, name), call.line);
  }
  if (!builtin.takes_rest && call.arguments.size() > builtin.parameters.size())
    fail(fmt::format("{} {} takes at most {} arguments", what, call.name, builtin.parameters.size()),
         call.line);
  if (call.arguments.size() + call.named_arguments.size() < builtin.required)
    fail(fmt::format("{} {} needs {} arguments", what, call.name, builtin.required), call.line);
  if (what != "filter" || !has_function_of(call.name)) return;
  const bool tests = call.name != "map";
  const std::size_t at = call.name.ends_with("attr") ? 1 : 0;
  if (call.arguments.size() <= at || call.arguments[at]->kind != ExpressionKind::constant) return;
  const Value& function = call.arguments[at]->value;
  if (function.is_text() && !(tests ? find_test(function.text()) : find_filter(function.text())))
    fail(fmt::format("{} {} is not supported", tests ? "test" : "filter", function.text()), call.line);
}

ExpressionPtr ExpressionParser::call(ExpressionPtr callee) {
  const int line = current().line;
  ExpressionPtr made;
  if (callee->kind == ExpressionKind::name) {
    made = make(ExpressionKind::call, line);
    made->name = callee->name;
    called.emplace(made->name, line);
  } else if (callee->kind == ExpressionKind::attribute) {
    if (!find_text_method(callee->name) && !find_dictionary_method(callee->name))
      fail(fmt::format("method {}() is not supported", callee->name), line);
    made = make(ExpressionKind::method, line, std::move(callee->parts));
    made->name = callee->name;
  } else {
    fail("calls of anything but functions, macros and methods are not supported", line);
  }
  arguments(*made);
  return made;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr subject) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(subject));
  ExpressionPtr made = make(ExpressionKind::filter, line, std::move(parts));
  made->name = expect_name();
  made->builtin = find_filter(made->name);
  if (!made->builtin) fail(fmt::format("filter {} is not supported", made->name), line);
  if (at_symbol("(")) arguments(*made);
  check_arguments(*made, "filter");
  return made;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr subject) {
  while (skip_symbol("|")) subject = filter(std::move(subject));
  return subject;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr subject) {
  const int line = take().line;  // is
  const bool negated = skip_name("not");
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(subject));
  ExpressionPtr made = make(ExpressionKind::test, line, std::move(parts));
  made->name = expect_name();
  made->builtin = find_test(made->name);
  if (!made->builtin) fail(fmt::format("test {} is not supported", made->name), line);
  const bool has_operand =
      current().kind == TokenKind::constant || at_symbol("[") || at_symbol("{") ||
      (current().kind == TokenKind::name && !at_name("else") && !at_name("or") && !at_name("and"));
  if (at_symbol("(")) {
    arguments(*made);
  } else if (has_operand) {
    if (at_name("is")) fail("tests cannot follow each other");
    made->arguments.push_back(postfix(primary()));
    finish(*made);
  }
  check_arguments(*made, "test");
  if (!negated) return made;
  std::vector<ExpressionPtr> tested;
  tested.push_back(std::move(made));
  ExpressionPtr opposite = make(ExpressionKind::unary, line, std::move(tested));
  opposite->name = "not";
  return opposite;
}

ExpressionPtr ExpressionParser::target(bool attributes, std::string_view end) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (current().kind == TokenKind::name && !(is_tuple && !end.empty() && at_name(end))) {
    parts.push_back(primary(attributes));
    if (!skip_symbol(",")) break;
    is_tuple = true;
  }
  if (parts.empty() && levels_ == 0 && skip_symbol("(")) {
    ++levels_;
    ExpressionPtr inner = target(attributes);
    --levels_;
    expect_symbol(")");
    return inner;
  }
  if (parts.empty()) fail("expected a name to assign to");
  for (const ExpressionPtr& part : parts) register_target(*part);
  return is_tuple ? make(ExpressionKind::tuple, line, std::move(parts)) : std::move(parts[0]);
}

void ExpressionParser::register_target(const Expression& target) {
  if (target.kind == ExpressionKind::name)
    assigned.emplace(target.name, target.line);
  else if (target.kind != ExpressionKind::attribute)
    fail("only names can be assigned to", target.line);
}

}  // namespace sailor::jinja
