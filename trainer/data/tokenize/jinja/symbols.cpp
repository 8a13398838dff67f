#include "trainer/data/tokenize/jinja/symbols.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace sailor::jinja {
namespace {

// What a name is when its block begins: that of a block around it or of the variables, or not defined.
enum class Start { known, unset };

class Symbols {
 public:
  explicit Symbols(const Symbols* parent) : parent_(parent) {}

  void load(const std::string& name) {
    if (!has(name)) starts_[name] = Start::known;
  }
  void store(const std::string& name) {
    stores_.insert(name);
    if (!starts_.contains(name)) starts_[name] = parent_ && parent_->has(name) ? Start::known : Start::unset;
  }
  void parameter(const std::string& name) { starts_[name] = Start::known; }

  void load(const Expression* expression);
  void store(const Expression& target);
  void visit(const Statements& statements) {
    for (const Statement& statement : statements) visit(statement);
  }
  std::vector<std::string> unset() const {
    std::vector<std::string> names;
    for (const auto& [name, start] : starts_) {
      if (start == Start::unset) names.push_back(name);
    }
    return names;
  }

 private:
  bool has(const std::string& name) const {
    return starts_.contains(name) || (parent_ && parent_->has(name));
  }
  void visit(const Statement& statement);
  void visit_branches(const Statement& statement);
  // Takes over what the three parts of an `if` do: its body, all its `elif`, its `else`.
  void merge(const std::vector<Symbols>& parts);

  const Symbols* parent_;
  std::map<std::string, Start> starts_;
  std::set<std::string> stores_;
};

void Symbols::load(const Expression* expression) {
  if (!expression) return;
  if (expression->kind == ExpressionKind::name || expression->kind == ExpressionKind::call)
    load(expression->name);
  for (const ExpressionPtr& part : expression->parts) load(part.get());
  for (const ExpressionPtr& part : expression->arguments) load(part.get());
  for (const auto& [name, part] : expression->named_arguments) load(part.get());
}

void Symbols::store(const Expression& target) {
  if (target.kind == ExpressionKind::name) return store(target.name);
  if (target.kind == ExpressionKind::attribute) return load(target.parts[0].get());
  for (const ExpressionPtr& part : target.parts) store(*part);
}

void Symbols::visit(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::output:
    case StatementKind::loop:
      return load(statement.expression.get());
    case StatementKind::assign:
      load(statement.expression.get());
      return store(*statement.target);
    case StatementKind::assign_block:
      return store(*statement.target);
    case StatementKind::macro:
      return store(statement.text);
    case StatementKind::branch:
      return visit_branches(statement);
    default:
      return;
  }
}

void Symbols::visit_branches(const Statement& statement) {
  load(statement.branches[0].first.get());
  std::vector<Symbols> parts(3, *this);
  parts[0].visit(statement.branches[0].second);
  for (std::size_t i = 1; i < statement.branches.size(); ++i) {
    const auto& [condition, body] = statement.branches[i];
    if (!condition) {
      parts[2].visit(body);
      continue;
    }
    parts[1].load(condition.get());
    std::vector<Symbols> inner(3, parts[1]);
    inner[0].visit(body);
    parts[1].merge(inner);
  }
  merge(parts);
}

void Symbols::merge(const std::vector<Symbols>& parts) {
  std::map<std::string, std::size_t> stored;
  for (const Symbols& part : parts) {
    for (const std::string& name : part.stores_) {
      if (!stores_.contains(name)) ++stored[name];
    }
  }
  for (const Symbols& part : parts) {
    for (const auto& [name, start] : part.starts_) starts_[name] = start;
    stores_.insert(part.stores_.begin(), part.stores_.end());
  }
  for (const auto& [name, count] : stored) {
    if (count < parts.size()) starts_[name] = Start::known;
  }
}

void fill(Statements& statements, const Symbols& around);

std::vector<std::string> fill_block(Statements& body, Symbols symbols) {
  symbols.visit(body);
  fill(body, symbols);
  return symbols.unset();
}

void declare(const Expression& target, Symbols& symbols) {
  if (target.kind == ExpressionKind::name) symbols.parameter(target.name);
  for (const ExpressionPtr& part : target.parts) declare(*part, symbols);
}

// The blocks within a block, of which all names are known.
void fill(Statements& statements, const Symbols& around) {
  for (Statement& statement : statements) {
    Symbols inner(&around);
    for (auto& [condition, body] : statement.branches) fill(body, around);
    if (statement.kind == StatementKind::loop) {
      declare(*statement.target, inner);
      statement.unset_otherwise = fill_block(statement.otherwise, Symbols(&around));
    }
    for (const auto& [name, otherwise] : statement.parameters) inner.parameter(name);
    for (const auto& [name, otherwise] : statement.parameters) inner.load(otherwise.get());
    statement.unset = fill_block(statement.body, inner);
  }
}

}  // namespace

void find_unset_names(Program& program) {
  program.unset = fill_block(program.statements, Symbols(nullptr));
}

}  // namespace sailor::jinja
