// Expressions of templates.
#include <fmt/format.h>

#include "trainer/data/tokenize/jinja/builtins.h"
#include "trainer/data/tokenize/jinja/evaluator_levels.h"

namespace sailor::jinja {

Value Evaluator::evaluate(const Expression& expression, Scope& scope) {
  const Level level(*this);
  line_ = expression.line;
  switch (expression.kind) {
    case ExpressionKind::constant:
      return expression.value;
    case ExpressionKind::name:
      return evaluate_name(expression, scope);
    case ExpressionKind::loop:
      return evaluate_loop(expression);
    case ExpressionKind::list:
    case ExpressionKind::tuple:
    case ExpressionKind::dictionary:
      return evaluate_literal(expression, scope);
    case ExpressionKind::attribute:
      return evaluate_attribute(expression, scope);
    case ExpressionKind::item:
    case ExpressionKind::slice:
      return evaluate_item(expression, scope);
    case ExpressionKind::call:
      return evaluate_call(expression, scope);
    case ExpressionKind::method:
      return evaluate_method(expression, scope);
    case ExpressionKind::filter:
    case ExpressionKind::test:
      return evaluate_builtin(expression, evaluate(*expression.parts[0], scope), scope);
    case ExpressionKind::unary:
      return evaluate_unary(expression, scope);
    case ExpressionKind::binary:
      return evaluate_binary(expression, scope);
    case ExpressionKind::concatenate:
      return evaluate_concatenation(expression, scope);
    case ExpressionKind::compare:
      return evaluate_comparison(expression, scope);
    case ExpressionKind::conditional:
      break;
  }
  return evaluate_conditional(expression, scope);
}

Value Evaluator::evaluate_name(const Expression& expression, const Scope& scope) const {
  if (const Value* found = scope.find(expression.name)) return *found;
  if (is_function(expression.name)) return Value(std::make_shared<const Function>(Function{expression.name}));
  return Value::undefined(fmt::format("{} is not defined", expression.name));
}

Value Evaluator::evaluate_loop(const Expression& expression) {
  Loop& loop = *loop_;
  const std::string& name = expression.name;
  if (name == "index") return loop.index + 1;
  if (name == "index0") return loop.index;
  if (name == "first") return loop.index == 0;
  if (name == "last") return !loop.peek();
  if (name == "length") return loop.length();
  if (name == "revindex") return loop.length() - loop.index;
  if (name == "revindex0") return loop.length() - loop.index - 1;
  if (name == "previtem")
    return loop.previous ? *loop.previous : Value::undefined("there is no previous item");
  if (name == "nextitem") return loop.peek() ? *loop.next : Value::undefined("there is no next item");
  return int64_t{0} + (name == "depth" ? 1 : 0);  // depth0: of recursive loops alone
}

Value Evaluator::evaluate_literal(const Expression& expression, Scope& scope) {
  std::vector<Value> items;
  for (const ExpressionPtr& part : expression.parts) items.push_back(evaluate(*part, scope));
  if (expression.kind == ExpressionKind::list)
    return make_sequence(std::move(items), SequenceKind::list, budget_);
  if (expression.kind == ExpressionKind::tuple)
    return make_sequence(std::move(items), SequenceKind::tuple, budget_);
  std::vector<std::pair<Value, Value>> entries;
  for (std::size_t i = 0; i < items.size(); i += 2)
    entries.emplace_back(std::move(items[i]), std::move(items[i + 1]));
  return make_dictionary(std::move(entries), budget_);
}

Value Evaluator::evaluate_attribute(const Expression& expression, Scope& scope) {
  const Value subject = evaluate(*expression.parts[0], scope);
  line_ = expression.line;
  return attribute_of(subject, expression.name);
}

Value Evaluator::evaluate_item(const Expression& expression, Scope& scope) {
  const Value subject = evaluate(*expression.parts[0], scope);
  Value keys[3];
  for (std::size_t i = 1; i < expression.parts.size(); ++i) {
    if (expression.parts[i]) keys[i - 1] = evaluate(*expression.parts[i], scope);
  }
  line_ = expression.line;
  if (expression.kind == ExpressionKind::item) return item_of(subject, keys[0], budget_);
  return slice_of(subject, keys[0], keys[1], keys[2], budget_);
}

Value Evaluator::evaluate_unary(const Expression& expression, Scope& scope) {
  const Value operand = evaluate(*expression.parts[0], scope);
  if (expression.name == "not") return !is_true(operand);
  line_ = expression.line;
  if (operand.is_undefined()) throw TemplateError(*operand.why_undefined().why);
  if (!operand.is_number()) throw TemplateError(fmt::format("a {} has no sign", type_name(operand)));
  return calculate("*", operand, int64_t{expression.name == "-" ? -1 : 1}, budget_);
}

Value Evaluator::evaluate_binary(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.parts[0], scope);
  if (expression.name == "and" || expression.name == "or") {
    const bool decided = is_true(left) == (expression.name == "or");
    return decided ? left : evaluate(*expression.parts[1], scope);
  }
  const Value right = evaluate(*expression.parts[1], scope);
  line_ = expression.line;
  return calculate(expression.name, left, right, budget_);
}

Value Evaluator::evaluate_concatenation(const Expression& expression, Scope& scope) {
  std::string text;
  for (const ExpressionPtr& part : expression.parts) text += to_text(evaluate(*part, scope), budget_);
  budget_.charge(text.size());
  return text;
}

Value Evaluator::evaluate_comparison(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.parts[0], scope);
  for (std::size_t i = 0; i < expression.names.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1], scope);
    line_ = expression.line;
    const std::string& name = expression.names[i];
    bool holds = false;
    if (name == "==" || name == "!=")
      holds = equal(left, right, budget_) == (name == "==");
    else if (name == "in" || name == "not in")
      holds = contains(right, left, budget_) == (name == "in");
    else if (const int order = compare(left, right, budget_); order == 0)
      holds = name.size() == 2;
    else
      holds = (order < 0) == name.starts_with("<");
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::evaluate_conditional(const Expression& expression, Scope& scope) {
  if (is_true(evaluate(*expression.parts[0], scope))) return evaluate(*expression.parts[1], scope);
  if (expression.parts[2]) return evaluate(*expression.parts[2], scope);
  return Value::undefined("an inline if without else has no value");
}

FunctionCall Evaluator::arguments(const Expression& expression, Scope& scope) {
  FunctionCall call{{}, {}, namespaces_, now_, budget_};
  for (const ExpressionPtr& argument : expression.arguments)
    call.arguments.push_back(evaluate(*argument, scope));
  for (const auto& [name, argument] : expression.named_arguments)
    call.named_arguments.emplace_back(name, evaluate(*argument, scope));
  line_ = expression.line;
  return call;
}

Value Evaluator::evaluate_filters(const Expression& filter, Value innermost, Scope& scope) {
  if (filter.parts[0]) innermost = evaluate_filters(*filter.parts[0], std::move(innermost), scope);
  return evaluate_builtin(filter, innermost, scope);
}

Value Evaluator::evaluate_builtin(const Expression& expression, const Value& subject, Scope& scope) {
  FunctionCall call = arguments(expression, scope);
  return call_builtin(*expression.builtin, subject, std::move(call.arguments),
                      std::move(call.named_arguments), budget_);
}

Value Evaluator::evaluate_method(const Expression& expression, Scope& scope) {
  const Value subject = evaluate(*expression.parts[0], scope);
  FunctionCall call = arguments(expression, scope);
  if (subject.is_undefined()) throw TemplateError(*subject.why_undefined().why);
  const Builtin* method = subject.is_text()      ? find_text_method(expression.name)
                          : subject.dictionary() ? find_dictionary_method(expression.name)
                                                 : nullptr;
  if (!method) {
    const bool known = !attribute_of(subject, expression.name).is_undefined();
    throw TemplateError(
        known ? fmt::format("method {}() of a {} is not supported", expression.name, type_name(subject))
              : fmt::format("a {} has no method {}()", type_name(subject), expression.name));
  }
  return call_builtin(*method, subject, std::move(call.arguments), std::move(call.named_arguments), budget_);
}

Value Evaluator::evaluate_call(const Expression& expression, Scope& scope) {
  const Value callee = evaluate_name(expression, scope);
  FunctionCall call = arguments(expression, scope);
  if (callee.is_undefined()) throw TemplateError(*callee.why_undefined().why);
  const Function* function = callee.function();
  if (function && function->macro) return call_macro(*function->macro, std::move(call));
  if (!function || !is_function(function->name))
    throw TemplateError(fmt::format("{} is a {} and cannot be called", expression.name, type_name(callee)));
  return call_function(function->name, std::move(call));
}

Value Evaluator::call_macro(const Statement& macro, FunctionCall call) {
  const auto& parameters = macro.parameters;
  if (call.arguments.size() > parameters.size())
    throw TemplateError(fmt::format("macro {} takes at most {} arguments", macro.text, parameters.size()));
  Scope scope(&top_);
  for (auto& [name, value] : call.named_arguments) {
    std::size_t at = 0;
    while (at < parameters.size() && parameters[at].first != name) ++at;
    if (at == parameters.size() || at < call.arguments.size())
      throw TemplateError(fmt::format("macro {} has no argument {}, or two values for it", macro.text, name));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].first;
    Value value = Value::undefined(fmt::format("argument {} of macro {} is not given", name, macro.text));
    if (i < call.arguments.size()) {
      value = std::move(call.arguments[i]);
    } else {
      bool given = false;
      for (auto& [named, argument] : call.named_arguments) {
        if (named != name) continue;
        value = std::move(argument);
        given = true;
      }
      if (!given && parameters[i].second) value = evaluate(*parameters[i].second, scope);
    }
    scope.set(name, std::move(value));
  }
  Loop* loop = std::exchange(loop_, nullptr);
  std::string text = capture(macro, scope);
  loop_ = loop;
  return text;
}

}  // namespace sailor::jinja
