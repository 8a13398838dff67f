// Parses the expressions of a template, and is the stream of tokens that statements are read from.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokenize/jinja/lexer.h"
#include "trainer/data/tokenize/jinja/syntax.h"

namespace sailor::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const std::string& file)
      : tokens_(std::move(tokens)), file_(file) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& peek() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool at_name(std::string_view name) const {
    return current().kind == TokenKind::name && current().text == name;
  }
  bool at_symbol(std::string_view symbol) const {
    return current().kind == TokenKind::symbol && current().text == symbol;
  }
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);
  void expect_symbol(std::string_view symbol);
  std::string expect_name();
  [[noreturn]] void fail(const std::string& what, int line = 0) const;  // 0 = at the current token

  ExpressionPtr expression(bool with_condition = true);
  // Expressions with commas between them are a tuple; it ends before `end`, if that is a name.
  ExpressionPtr tuple(bool with_condition = true, std::string_view end = "");
  // What may be assigned to: names, tuples of names, and with `attributes` also NAME.ATTRIBUTE.
  ExpressionPtr target(bool attributes, std::string_view end = "");
  // The filters behind `subject`, which may be null.
  ExpressionPtr filters(ExpressionPtr subject);

  int loops = 0;                                // that the current statement is in
  std::map<std::string, int> called;            // names of functions, and a line with a call
  void register_name(const std::string& name);  // counts the different ones
  std::map<std::string, int> assigned;          // names that templates assign to

 private:
  ExpressionPtr make(ExpressionKind kind, int line, std::vector<ExpressionPtr> parts = {});
  void finish(Expression& expression) const;
  ExpressionPtr binary(std::string symbol, int line, ExpressionPtr a, ExpressionPtr b);
  ExpressionPtr any_of();
  ExpressionPtr all_of();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary(bool attributes = false);
  ExpressionPtr name(bool attributes);
  ExpressionPtr list();
  ExpressionPtr dictionary();
  ExpressionPtr postfix(ExpressionPtr subject);
  ExpressionPtr subscript(ExpressionPtr subject);
  ExpressionPtr attribute(ExpressionPtr subject);
  ExpressionPtr call(ExpressionPtr callee);
  ExpressionPtr filter(ExpressionPtr subject);
  ExpressionPtr test(ExpressionPtr subject);
  void arguments(Expression& call);
  void check_arguments(const Expression& call, std::string_view what) const;
  void register_target(const Expression& target);

  std::vector<Token> tokens_;
  const std::string& file_;
  std::set<std::string> names_;
  std::size_t at_ = 0;
  int levels_ = 0;
};

}  // namespace sailor::jinja
