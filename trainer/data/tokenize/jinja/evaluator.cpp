#include "trainer/data/tokenize/jinja/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/data/tokenize/jinja/evaluator_levels.h"

namespace sailor::jinja {

Scope::Scope(const Scope* parent, const std::vector<std::string>& unset) : parent_(parent) {
  for (const std::string& name : unset)
    values_.emplace_back(name, Value::undefined(name + " is not defined"));
}

void Scope::set(std::string_view name, Value value) {
  const auto found =
      std::find_if(values_.begin(), values_.end(), [name](const auto& known) { return known.first == name; });
  if (found != values_.end())
    found->second = std::move(value);
  else
    values_.emplace_back(name, std::move(value));
}

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent_) {
    for (const auto& [known, value] : scope->values_) {
      if (known == name) return &value;
    }
  }
  return nullptr;
}

const std::optional<Value>& Evaluator::Loop::peek() {
  while (!next && at < items.size()) {
    Value& item = items[at++];
    if (statement.condition && !passed) {
      Scope scope(&around);
      evaluator.assign(*statement.target, item, scope);
      if (!is_true(evaluator.evaluate(*statement.condition, scope))) continue;
    }
    next = std::move(item);
  }
  return next;
}

bool Evaluator::Loop::advance() {
  if (!peek()) return false;
  if (current) ++index;
  previous = std::exchange(current, std::exchange(next, std::nullopt));
  return true;
}

// Tests the condition for all items that are left.
int64_t Evaluator::Loop::length() {
  if (statement.condition && !passed) {
    std::vector<Value> left;
    while (peek()) left.push_back(*std::exchange(next, std::nullopt));
    items = std::move(left);
    at = 0;
    passed = true;
  }
  return index + 1 + (next ? 1 : 0) + static_cast<int64_t>(items.size() - at);
}

void Evaluator::write(const std::string& text) {
  budget_.charge(text.size());
  output_ += text;
}

Evaluator::Flow Evaluator::execute(const Statements& statements, Scope& scope) {
  for (const Statement& statement : statements) {
    const Flow flow = execute(statement, scope);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::execute(const Statement& statement, Scope& scope) {
  const Level level(*this);
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::data:
      write(statement.text);
      break;
    case StatementKind::output: {
      const std::string text = to_text(evaluate(*statement.expression, scope), budget_);
      write(text);
      break;
    }
    case StatementKind::assign:
      assign(*statement.target, evaluate(*statement.expression, scope), scope);
      break;
    case StatementKind::assign_block: {
      Value text = capture(statement, scope);
      if (statement.expression) text = evaluate_filters(*statement.expression, std::move(text), scope);
      assign(*statement.target, std::move(text), scope);
      break;
    }
    case StatementKind::branch:
      return execute_branch(statement, scope);
    case StatementKind::loop:
      return execute_loop(statement, scope);
    case StatementKind::macro:
      scope.set(statement.text,
                Value(std::make_shared<const Function>(Function{statement.text, &statement})));
      break;
    case StatementKind::generation:
      execute_generation(statement, scope);
      break;
    case StatementKind::leave:
      return Flow::leave;
    case StatementKind::next:
      return Flow::next;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::execute_branch(const Statement& statement, Scope& scope) {
  for (const auto& [condition, body] : statement.branches) {
    if (!condition || is_true(evaluate(*condition, scope))) return execute(body, scope);
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::execute_loop(const Statement& statement, Scope& scope) {
  Loop loop{items_of(evaluate(*statement.expression, scope), budget_), statement, scope, *this};
  loop.outer = loop_;
  loop.depth = loop_ ? loop_->depth + 1 : 0;
  bool completed = false;  // of Jinja: an iteration that ends with break or continue does not count
  while (loop.advance()) {
    budget_.charge(Level::kWorkPerNode);
    Scope inner(&scope, statement.unset);
    assign(*statement.target, *loop.current, inner);
    loop_ = &loop;
    const Flow flow = execute(statement.body, inner);
    loop_ = loop.outer;
    if (flow == Flow::leave) break;
    completed = completed || flow == Flow::on;
  }
  Scope inner(&scope, statement.unset_otherwise);
  return completed ? Flow::on : execute(statement.otherwise, inner);
}

void Evaluator::execute_generation(const Statement& statement, Scope& scope) {
  const std::size_t begin = output_.size();
  Scope inner(&scope, statement.unset);
  execute(statement.body, inner);
  if (output_.size() > begin) generated_.emplace_back(begin, output_.size());
}

std::string Evaluator::capture(const Statement& block, Scope& scope) {
  std::string outside = std::exchange(output_, {});
  Scope inner(&scope, block.unset);
  execute(block.body, inner);
  return std::exchange(output_, std::move(outside));
}

void Evaluator::assign(const Expression& target, Value value, Scope& scope) {
  if (target.kind == ExpressionKind::tuple) return assign_items(target, value, scope);
  if (target.kind == ExpressionKind::name) return scope.set(target.name, std::move(value));
  Namespace* names = evaluate(*target.parts[0], scope).names();
  if (!names) throw TemplateError("only namespaces have attributes that can be set");
  const auto found = std::find_if(names->values.begin(), names->values.end(),
                                  [&target](const auto& known) { return known.first == target.name; });
  if (found != names->values.end())
    found->second = std::move(value);
  else
    names->values.emplace_back(target.name, std::move(value));
}

void Evaluator::assign_items(const Expression& target, const Value& value, Scope& scope) {
  std::vector<Value> items = items_of(value, budget_);
  if (items.size() != target.parts.size())
    throw TemplateError(fmt::format("{} values are assigned to {} names", items.size(), target.parts.size()));
  for (std::size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], std::move(items[i]), scope);
}

}  // namespace sailor::jinja
