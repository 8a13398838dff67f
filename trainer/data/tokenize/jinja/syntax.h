// The syntax tree of a template. Immutable once parsed.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/tokenize/jinja/value.h"

namespace sailor::jinja {

struct Builtin;
struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind {
  constant,     // value
  name,         // name
  loop,         // loop.NAME
  list,         // parts
  tuple,        // parts
  dictionary,   // parts: keys and values in turn
  attribute,    // parts[0].NAME
  item,         // parts[0][parts[1]]
  slice,        // parts[0][parts[1]:parts[2]:parts[3]]; the last three may be null
  call,         // NAME(arguments)
  method,       // parts[0].NAME(arguments)
  filter,       // parts[0] | NAME(arguments); of a block that is set, parts[0] is null
  test,         // parts[0] is NAME(arguments)
  unary,        // NAME parts[0], with not, - and +
  binary,       // parts[0] NAME parts[1]
  concatenate,  // parts, joined by ~
  compare,      // parts[0] names[0] parts[1] names[1] parts[2] ...
  conditional,  // parts[1] if parts[0] else parts[2], which may be null
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  int line = 0;
  int levels = 1;
  Value value;
  std::string name;
  std::vector<std::string> names;
  std::vector<ExpressionPtr> parts;
  const Builtin* builtin = nullptr;  // of filters and tests
  std::vector<ExpressionPtr> arguments;
  std::vector<std::pair<std::string, ExpressionPtr>> named_arguments;
};

struct Statement;
using Statements = std::vector<Statement>;

enum class StatementKind {
  data,          // text
  output,        // {{ expression }}
  assign,        // set target = expression
  assign_block,  // set target [| filter]; body; endset
  branch,        // if: bodies of the first branch whose condition holds; without condition: else
  loop,          // for target in expression [if condition]; body; otherwise
  macro,         // text is its name
  generation,    // body is an answer of the assistant
  leave,         // break
  next,          // continue
};

struct Statement {
  StatementKind kind = StatementKind::data;
  int line = 0;
  std::string text;
  ExpressionPtr target, expression, condition;
  Statements body, otherwise;
  std::vector<std::string> unset,
      unset_otherwise;  // names not defined when body or otherwise begins (symbols.h)
  std::vector<std::pair<ExpressionPtr, Statements>> branches;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // of a macro; the default may be null
};

}  // namespace sailor::jinja
