#include "trainer/data/tokenize/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/jinja/expression_parser.h"
#include "trainer/data/tokenize/jinja/functions.h"
#include "trainer/data/tokenize/jinja/symbols.h"

namespace sailor::jinja {
namespace {

class TemplateParser {
 public:
  TemplateParser(std::vector<Token> tokens, const std::string& file) : in_(std::move(tokens), file) {}

  Program parse() {
    program_.statements = statements({});
    for (const auto& [name, line] : in_.called) {
      if (!in_.assigned.contains(name) && !is_function(name))
        in_.fail(fmt::format("function {}() is not supported", name), line);
    }
    return std::move(program_);
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  Statements statements(Ends ends);
  Statement statement();
  Statement set(Statement made);
  Statement loop(Statement made);
  Statement branch(Statement made);
  Statement macro(Statement made);
  Statement generation(Statement made);
  Statement leave(Statement made);
  // The statements up to one of the tags, whose name is taken.
  Statements body(Ends ends) {
    in_.skip_symbol(":");
    end_of_tag();
    return statements(ends);
  }
  void end_of_tag() {
    if (in_.take().kind != TokenKind::block_end) in_.fail("expected %} at the end of the tag");
  }

  ExpressionParser in_;
  Program program_;
  int levels_ = 0;          // of blocks
  int leavable_loops_ = 0;  // that break and continue refer to
  int captures_ = 0;        // macros, blocks that are set, and answers around the statement
};

Statements TemplateParser::statements(Ends ends) {
  if (++levels_ > kMostNodeLevels)
    in_.fail(fmt::format("blocks nest more than {} levels deep", kMostNodeLevels));
  Statements made;
  while (true) {
    const Token token = in_.take();
    if (token.kind == TokenKind::end) {
      if (ends.size() > 0)
        in_.fail(fmt::format("the template ends without {}", *(ends.end() - 1)), token.line);
      break;
    }
    if (token.kind == TokenKind::data) {
      made.emplace_back().text = token.text;
      made.back().line = token.line;
    } else if (token.kind == TokenKind::output_begin) {
      Statement& output = made.emplace_back();
      output.kind = StatementKind::output;
      output.line = token.line;
      output.expression = in_.tuple();
      if (in_.take().kind != TokenKind::output_end) in_.fail("expected }} behind the expression");
    } else if (in_.current().kind == TokenKind::name &&
               std::find(ends.begin(), ends.end(), in_.current().text) != ends.end()) {
      break;
    } else {
      made.push_back(statement());
      end_of_tag();
    }
  }
  --levels_;
  return made;
}

Statement TemplateParser::statement() {
  Statement made;
  made.line = in_.current().line;
  const std::string tag = in_.expect_name();
  if (tag == "set") return set(std::move(made));
  if (tag == "for") return loop(std::move(made));
  if (tag == "if") return branch(std::move(made));
  if (tag == "macro") return macro(std::move(made));
  if (tag == "generation") return generation(std::move(made));
  if (tag == "break" || tag == "continue") {
    made.kind = tag == "break" ? StatementKind::leave : StatementKind::next;
    return leave(std::move(made));
  }
  in_.fail(fmt::format("tag {} is not supported here", tag), made.line);
}

Statement TemplateParser::leave(Statement made) {
  if (leavable_loops_ == 0) in_.fail("break and continue are supported in a for block only", made.line);
  return made;
}

Statement TemplateParser::set(Statement made) {
  made.target = in_.target(true);
  if (in_.skip_symbol("=")) {
    made.kind = StatementKind::assign;
    made.expression = in_.tuple();
    return made;
  }
  made.kind = StatementKind::assign_block;
  if (made.target->kind == ExpressionKind::tuple) in_.fail("a block is one value", made.line);
  made.expression = in_.filters(nullptr);
  ++captures_;
  const int loops = std::exchange(leavable_loops_, 0);
  made.body = body({"endset"});
  leavable_loops_ = loops;
  --captures_;
  in_.take();
  return made;
}

Statement TemplateParser::loop(Statement made) {
  made.kind = StatementKind::loop;
  made.target = in_.target(false, "in");
  if (!in_.skip_name("in")) in_.fail("expected in behind the names of a for block");
  made.expression = in_.tuple(false, "recursive");
  const int loops = in_.loops;
  if (in_.skip_name("if")) {
    in_.loops = 0;  // the condition knows no loop
    made.condition = in_.expression();
    in_.loops = loops;
  }
  if (in_.at_name("recursive")) in_.fail("recursive loops are not supported");
  ++in_.loops;
  ++leavable_loops_;
  made.body = body({"else", "endfor"});
  --in_.loops;
  --leavable_loops_;
  if (in_.take().text == "else") {
    made.otherwise = body({"endfor"});
    in_.take();
  }
  return made;
}

Statement TemplateParser::branch(Statement made) {
  made.kind = StatementKind::branch;
  while (true) {
    ExpressionPtr condition = in_.tuple(false);
    Statements then = body({"elif", "else", "endif"});
    made.branches.emplace_back(std::move(condition), std::move(then));
    const std::string end = in_.take().text;
    if (end == "endif") return made;
    if (end == "else") break;
  }
  made.branches.emplace_back(nullptr, body({"endif"}));
  in_.take();
  return made;
}

Statement TemplateParser::macro(Statement made) {
  made.kind = StatementKind::macro;
  made.text = in_.expect_name();
  if (in_.loops > 0 || captures_ > 0)
    in_.fail("macros are supported outside of for blocks and other macros only", made.line);
  in_.assigned.emplace(made.text, made.line);
  in_.expect_symbol("(");
  while (!in_.at_symbol(")")) {
    std::string name = in_.expect_name();
    in_.assigned.emplace(name, made.line);
    in_.register_name(name);
    ExpressionPtr otherwise = in_.skip_symbol("=") ? in_.expression() : nullptr;
    if (!otherwise && !made.parameters.empty() && made.parameters.back().second)
      in_.fail("a parameter without a default follows one with a default");
    made.parameters.emplace_back(std::move(name), std::move(otherwise));
    if (!in_.skip_symbol(",")) break;
  }
  in_.expect_symbol(")");
  ++captures_;
  made.body = body({"endmacro"});
  --captures_;
  in_.take();
  return made;
}

Statement TemplateParser::generation(Statement made) {
  made.kind = StatementKind::generation;
  if (captures_ > 0) in_.fail("generation blocks are not supported in macros and other blocks", made.line);
  program_.has_generation = true;
  ++captures_;
  const int loops = std::exchange(leavable_loops_, 0);
  made.body = body({"endgeneration"});
  leavable_loops_ = loops;
  --captures_;
  in_.take();
  return made;
}

}  // namespace

Program parse_template(std::string_view source, const std::string& file) {
  if (source.size() > kMostTemplateBytes)
    throw InputError(Where{file, 0}, fmt::format("is larger than {} KiB", kMostTemplateBytes >> 10));
  Program program = TemplateParser(read_tokens(source, file), file).parse();
  find_unset_names(program);
  return program;
}

}  // namespace sailor::jinja
