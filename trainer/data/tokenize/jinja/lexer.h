// A template as tokens, with the white space control of Jinja: `-`, `+`, trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokenize/jinja/value.h"

namespace sailor::jinja {

enum class TokenKind { data, output_begin, output_end, block_begin, block_end, name, constant, symbol, end };

struct Token {
  TokenKind kind = TokenKind::end;
  int line = 0;      // counts from 1
  std::string text;  // of data, names and symbols, as written
  Value value;       // of a constant: text, integer or float
};

// The last token is `end`. Throws InputError naming `file` and the line.
std::vector<Token> read_tokens(std::string_view source, const std::string& file);

}  // namespace sailor::jinja
