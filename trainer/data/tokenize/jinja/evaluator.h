// One rendering of a template: executes its statements, evaluates its expressions.
#pragma once

#include <ctime>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/tokenize/jinja/functions.h"
#include "trainer/data/tokenize/jinja/parser.h"

namespace sailor::jinja {

// The names that a block assigns to, and the block around it.
class Scope {
 public:
  // `unset` are names that are not defined until they are set, whatever the blocks around it know.
  explicit Scope(const Scope* parent, const std::vector<std::string>& unset = {});
  void set(std::string_view name, Value value);
  const Value* find(std::string_view name) const;  // nullptr if neither this nor any around it has it

 private:
  const Scope* parent_;
  std::vector<std::pair<std::string_view, Value>> values_;  // names are those of the syntax tree
};

class Evaluator {
 public:
  // All arguments outlive the evaluator.
  Evaluator(const Program& program, const Scope& globals, const std::tm& now)
      : program_(program), top_(&globals, program.unset), now_(now) {}

  // Throws TemplateError; line() is then where it happened.
  void run() { execute(program_.statements, top_); }

  int line() const { return line_; }
  std::string take_text() { return std::move(output_); }
  // Where generation blocks are in the text.
  std::vector<std::pair<std::size_t, std::size_t>> take_generated() { return std::move(generated_); }

 private:
  enum class Flow { on, leave, next };
  struct Loop;
  struct Level;  // counts levels of execution and evaluation while it lives

  Flow execute(const Statements& statements, Scope& scope);
  Flow execute(const Statement& statement, Scope& scope);
  Flow execute_branch(const Statement& statement, Scope& scope);
  Flow execute_loop(const Statement& statement, Scope& scope);
  void execute_generation(const Statement& statement, Scope& scope);
  void write(const std::string& text);
  // What statements write, in a scope of their own.
  std::string capture(const Statement& block, Scope& scope);
  void assign(const Expression& target, Value value, Scope& scope);
  void assign_items(const Expression& target, const Value& value, Scope& scope);

  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluate_name(const Expression& expression, const Scope& scope) const;
  Value evaluate_loop(const Expression& expression);
  Value evaluate_literal(const Expression& expression, Scope& scope);
  Value evaluate_attribute(const Expression& expression, Scope& scope);
  Value evaluate_item(const Expression& expression, Scope& scope);
  Value evaluate_unary(const Expression& expression, Scope& scope);
  Value evaluate_binary(const Expression& expression, Scope& scope);
  Value evaluate_concatenation(const Expression& expression, Scope& scope);
  Value evaluate_comparison(const Expression& expression, Scope& scope);
  Value evaluate_conditional(const Expression& expression, Scope& scope);
  // The filters of `filter` and of its subject, down to `innermost`, which is what all of them filter.
  Value evaluate_filters(const Expression& filter, Value innermost, Scope& scope);
  Value evaluate_builtin(const Expression& expression, const Value& subject, Scope& scope);
  Value evaluate_call(const Expression& expression, Scope& scope);
  Value evaluate_method(const Expression& expression, Scope& scope);
  Value call_macro(const Statement& macro, FunctionCall call);
  FunctionCall arguments(const Expression& expression, Scope& scope);

  const Program& program_;
  Scope top_;
  const std::tm& now_;
  Budget budget_;
  std::deque<Namespace> namespaces_;
  std::string output_;
  std::vector<std::pair<std::size_t, std::size_t>> generated_;
  Loop* loop_ = nullptr;  // the innermost
  int line_ = 0, levels_ = 0;
};

}  // namespace sailor::jinja
